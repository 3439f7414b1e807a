//! What does a column hold?

macro_rules! roles {
    ($($variant:ident = $tag:literal, $name:literal;)*) => {
        /// The content of a column. The discriminants are on disk (`docs/format/chunk.md`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Role { $($variant = $tag),* }

        impl Role {
            /// Name, as in the tables of the format page.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($tag => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

roles! {
    At = 1, "at";
    Value = 2, "value";
    Form = 3, "form";
    Body = 4, "body";
    OperationKind = 10, "operation-kind";
    OperationName = 11, "operation-name";
    ThreadName = 12, "thread-name";
    AttributeKey = 13, "attribute-key";
    ShapeCarried = 14, "shape-carried";
    CarriedOperation = 15, "carried-operation";
    CarriedCall = 16, "carried-call";
    ShapeEvents = 17, "shape-events";
    Event = 18, "event";
    LayoutAttributes = 19, "layout-attributes";
    LayoutCall = 20, "layout-call";
    LayoutKey = 21, "layout-key";
    LayoutForm = 22, "layout-form";
    CallerSeriesHigh = 23, "caller-series-high";
    CallerSeriesLow = 24, "caller-series-low";
    CallerKind = 25, "caller-kind";
    CallerName = 26, "caller-name";
    Base = 30, "base";
    TraceHigh = 31, "trace-high";
    TraceLow = 32, "trace-low";
    TraceLowFromBase = 33, "trace-low-from-base";
    Part = 34, "part";
    ParentThere = 35, "parent-there";
    Parent = 36, "parent";
    ParentFromBase = 37, "parent-from-base";
    Thread = 38, "thread";
    Start = 39, "start";
    FirstCall = 40, "first-call";
    Shape = 41, "shape";
    Layout = 42, "layout";
    Caller = 43, "caller";
    Age = 50, "age";
    TimeGroup = 51, "time-group";
    Time = 52, "time";
    Integer = 60, "integer";
    Text = 61, "text";
    IdHigh = 62, "id-high";
    IdLow = 63, "id-low";
}
