//! Tests declared records with the real binary. Each becomes an entry with a JSON object as text, and the server lists the types
//! of the records.

use std::path::Path;

use serde_json::{Value, json};
use tacho_ingest::wire::{
    CallRef, ClientFrame, DataFrame, DeclaredRecord, DictFrame, FieldType, FieldValue, RecordField,
    RecordType, SegmentRecord, ServerFrame, TraceForm, feature,
};

use crate::support::agent::{self, Agent, content, dictionary, hello};
use crate::support::{Server, run, tokens, wait_for};

const SESSION: u128 = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0;
/// The trace of segment 1 of the session, and the span of its call 1.
const TRACE: &str = "0f1e2d3c4b5a6978ecd7ba92fd62a5d4";
const SPAN: &str = "8c71ca8d0c258de0";
/// Ids that [`declare`] defines.
const ORDER: u64 = 1;
const SERIES: u64 = 20;

fn order(fields: &[(FieldType, &str, &str)]) -> RecordType {
    let field = |(field_type, name, unit): &(FieldType, &str, &str)| RecordField {
        field_type: *field_type,
        name: (*name).into(),
        unit: (*unit).into(),
    };
    RecordType { name: "shop_order_placed".into(), fields: fields.iter().map(field).collect() }
}

/// The first form of the type, and the form in the next version of the application.
fn forms() -> [RecordType; 2] {
    use FieldType::{F64, I64, Text};
    let first = [(Text, "customer", ""), (I64, "items", ""), (F64, "total", "EUR")];
    let later = [(Text, "customer", ""), (F64, "total", "ct")];
    [order(&first), order(&later)]
}

fn declare(form: &RecordType) -> Vec<u8> {
    let mut frame = DictFrame::new();
    let labels = [("__name__", "shop_order_placed"), ("service", "shop"), ("host", "h1")];
    frame.series(SERIES, labels.into_iter());
    frame.record_type(ORDER, form);
    frame.finish()
}

fn put(frame: &mut DataFrame, dt: i64, call: Option<CallRef>, values: &[FieldValue<'_>]) {
    let at = content::BASE + dt;
    frame.declared(&DeclaredRecord { record_type: ORDER, series: SERIES, at, call, values });
}

/// Searches entries. Returns their times relative to [`content::BASE`], and their texts, the oldest first.
fn ask(server: &Server, question: &str) -> Vec<(i64, String)> {
    let path = format!("/api/v1/entries?start=1699999999&end=1700000002&order=oldest&{question}");
    let answer = server.get(&path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let entry = |entry: &Value| {
        let time: i64 = entry["time"].as_str().unwrap().parse().unwrap();
        (time - content::BASE, entry["text"].as_str().unwrap().to_owned())
    };
    answer.json()["data"]["entries"].as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn a_declared_record_is_an_entry_with_members_and_its_trace() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0"]);
    let mut agent = Agent::connect(server.records, &hello(SESSION)).expect("server greets");
    assert_eq!(agent.welcome.features & feature::RECORDS, feature::RECORDS);
    agent.send(&dictionary(SESSION));
    agent.send(&declare(&forms()[0]));
    let mut frame = DataFrame::new(1, content::BASE);
    frame.segment(&SegmentRecord {
        number: 1,
        trace: TraceForm::Own,
        parent: None,
        thread: 1,
        start: content::BASE,
        continued: None,
        events: &content::events(1),
        attributes: &[],
    });
    let call = CallRef { number: 1, trace: TraceForm::Own, call: 1 };
    let values = [FieldValue::Text("ada"), FieldValue::I64(i64::MAX), FieldValue::F64(9.5)];
    put(&mut frame, 0, Some(call), &values);
    put(&mut frame, 1, None, &[FieldValue::Null, FieldValue::I64(3), FieldValue::F64(f64::NAN)]);
    frame.raw(4, &[ORDER as u8, SERIES as u8, 0, 64]);
    put(&mut frame, 2, None, &[FieldValue::Text("ö\"漢"), FieldValue::I64(-1), FieldValue::F64(1e300)]);
    agent.send(&frame.finish());
    let told = agent.wait_ack(1);
    let [ServerFrame::Reject(reject)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((reject.record, reject.reason.as_str()), (3, "combination of flags 64 is unknown"));

    // The next version of the application declares another form. Both forms are listed.
    agent.send(&declare(&forms()[1]));
    let mut frame = DataFrame::new(2, content::BASE);
    put(&mut frame, 3, None, &[FieldValue::Text("ada"), FieldValue::F64(950.0)]);
    agent.send(&frame.finish());
    agent.wait_ack(2);

    let in_call = format!(
        r#"{{"customer":"ada","items":{},"total":9.5,"trace_id":"{TRACE}","span_id":"{SPAN}"}}"#,
        i64::MAX
    );
    let texts = [
        in_call.as_str(),
        r#"{"customer":null,"items":3,"total":"NaN"}"#,
        r#"{"customer":"ö\"漢","items":-1,"total":1e300}"#,
        r#"{"customer":"ada","total":950.0}"#,
    ];
    let at = |place: i64| (place, texts[usize::try_from(place).unwrap()].to_owned());
    for from in ["memory", "chunks"] {
        assert_eq!(ask(&server, "match[]=shop_order_placed"), [at(0), at(1), at(2), at(3)], "{from}");
        for (field, found) in [
            ("customer=ada", vec![at(0), at(3)]),
            ("items=9223372036854775807", vec![at(0)]),
            ("total=NaN", vec![at(1)]),
            (&format!("trace_id={TRACE}"), vec![at(0)]),
        ] {
            assert_eq!(ask(&server, &format!("match[]=shop_order_placed&field={field}")), found, "{field}");
        }
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    let trace = server.get(&format!("/api/traces/{TRACE}?start=1699999999&end=1700000002"));
    assert!(trace.text().contains(SPAN), "{}", trace.text());
    types_are_listed(&server);
    let (code, table, stderr) = run(&[
        &["entries", "shop_order_placed", "--columns", "customer,total", "--oldest", "--limit", "1"][..],
        &["--server", &server.url(), "--start", "1699999999", "--end", "1700000002"],
    ]
    .concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(table.contains("CUSTOMER  TOTAL") && table.contains("ada       9.5"), "{table}");
}

fn types_are_listed(server: &Server) {
    let field = |name: &str, kind: &str, unit: &str| json!({ "name": name, "type": kind, "unit": unit });
    let data = server.get("/api/v1/records?name=shop_order_placed&service=shop").json()["data"].clone();
    let fields: Vec<&Value> = data["types"].as_array().unwrap().iter().map(|form| &form["fields"]).collect();
    let first =
        json!([field("customer", "text", ""), field("items", "i64", ""), field("total", "f64", "EUR")]);
    let later = json!([field("customer", "text", ""), field("total", "f64", "ct")]);
    assert_eq!(fields, [&first, &later]);
    assert_eq!(data["refused"], 0);
    let none = server.get("/api/v1/records?name=shop_order_placed&service=other").json()["data"].clone();
    assert_eq!(none["types"], json!([]));
}

/// For each form of the type: its units, and the time of its first definition. The form that was declared last comes last.
fn listed(server: &Server) -> Vec<(Vec<String>, String)> {
    let data = server.get("/api/v1/records").json()["data"]["types"].take();
    let units = |form: &Value| {
        let fields = form["fields"].as_array().unwrap().iter();
        fields.map(|field| field["unit"].as_str().unwrap().to_owned()).collect()
    };
    let form = |form: &Value| (units(form), form["since"].as_str().unwrap().to_owned());
    data.as_array().unwrap().iter().map(form).collect()
}

/// Declares the form and writes an acknowledged record of it.
fn write(server: &Server, session: u128, form: &RecordType) {
    let mut agent = Agent::connect(server.records, &hello(session)).expect("server greets");
    agent.send(&declare(form));
    let mut frame = DataFrame::new(1, content::BASE);
    put(&mut frame, 0, None, &vec![FieldValue::Null; form.fields.len()]);
    agent.send(&frame.finish());
    assert!(agent.wait_ack(1).is_empty());
}

fn serve(data: &Path) -> Server {
    Server::start_with(data, &["--selfwatch-seconds", "0"])
}

#[test]
fn declared_types_survive_sigkill_after_an_acknowledgement() {
    let data = tempfile::tempdir().unwrap();
    let [first, later] = forms();
    let (euro, cent) = (["", "", "EUR"].as_slice(), ["", "ct"].as_slice());
    let mut since: Vec<(Vec<String>, String)> = Vec::new();
    let mut session = 0;
    // In the fourth and in the last step, the application is rolled back to its first version.
    for (forms, expect) in [
        (vec![&first], vec![euro]),
        (vec![&later], vec![euro, cent]),
        (vec![], vec![euro, cent]),
        (vec![&first], vec![cent, euro]),
        (vec![&later, &first], vec![cent, euro]),
    ] {
        let server = serve(data.path());
        assert_eq!(listed(&server), since, "the types have changed after the server was killed");
        for form in forms {
            session += 1;
            write(&server, session, form);
        }
        let now = listed(&server);
        let units: Vec<&[String]> = now.iter().map(|form| form.0.as_slice()).collect();
        assert_eq!(units, expect);
        assert!(
            since.iter().all(|form| now.contains(form)),
            "the time of the first definition has changed: {since:?}, {now:?}"
        );
        since = now;
        server.kill();
    }
}

#[test]
fn unreadable_or_unwritable_record_types_do_not_stop_the_server() {
    let data = tempfile::tempdir().unwrap();
    let [first, later] = forms();
    let path = data.path().join("record_types.json");
    std::fs::write(&path, r#"{"version":1,"types":[{"name":"a"}]}"#).unwrap();
    let server = serve(data.path());
    let told = "cannot use the file of record types";
    let log = wait_for(told, || Some(server.log()).filter(|log| log.contains(told)));
    for part in ["WARN", path.to_str().unwrap(), "missing field `service`"] {
        assert!(log.contains(part), "{part:?} in {log}");
    }
    assert!(listed(&server).is_empty());
    // With a directory in place of the new file, writing fails for every user, even root.
    let aside = data.path().join("record_types.json.new");
    std::fs::create_dir(&aside).unwrap();
    write(&server, 1, &first);
    write(&server, 2, &later);
    assert_eq!(listed(&server).len(), 2);
    let told = "cannot store record types";
    let log = wait_for("the warning", || Some(server.log()).filter(|log| log.contains(told)));
    assert_eq!(log.matches(told).count(), 1, "{log}");
    std::fs::remove_dir(&aside).unwrap();
    write(&server, 3, &later);
    let known = listed(&server);
    server.kill();
    assert_eq!(
        listed(&serve(data.path())),
        known,
        "the types were not written after writing became possible again"
    );
}

#[test]
fn a_damaged_definition_ends_the_connection_and_records_of_an_invalid_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0"]);
    let mut agent = Agent::open(server.records, 7);
    agent.send(&declare(&order(&[(FieldType::Bool, "trace_id", "")])));
    let mut frame = DataFrame::new(1, content::BASE);
    put(&mut frame, 0, None, &[FieldValue::Bool(true)]);
    frame.samples(agent::SERIES, &content::samples(1));
    agent.send(&frame.finish());
    let told = agent.wait_ack(1);
    let reason = "record type \"shop_order_placed\": a field may not be named \"trace_id\"";
    assert!(matches!(&told[..], [ServerFrame::Reject(reject)] if reject.reason == reason), "{told:?}");
    // A definition that announces 200 fields but has none.
    let mut frame = Vec::new();
    ClientFrame::Dict(&[4, 1, 1, b't', 200, 1]).encode(&mut frame);
    agent.send(&frame);
    let said = agent.receive();
    let expect = "malformed DICT: length beyond the end of the input at byte 4";
    assert!(matches!(&said, Some(ServerFrame::Error { code: 5, message }) if message == expect), "{said:?}");
}

#[test]
fn a_service_with_many_types_does_not_exclude_those_of_others() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let listed = |service: &str| {
        let answer = server.get(&format!("/api/v1/records?service={service}")).json();
        let types = answer["data"]["types"].as_array().unwrap().len();
        (types, answer["data"]["refused"].as_u64().unwrap())
    };
    let declare = |service: &str, count: u64| {
        let (mut agent, _) = tokens::Agent::connect(server.records, service, None);
        let mut frame = DictFrame::new();
        for id in 1..=count {
            frame.record_type(id, &RecordType { name: format!("{service}_{id}").into(), ..order(&[]) });
        }
        agent.send_bytes(&frame.finish());
        agent
    };
    let _shop = declare("shop", 1_500);
    wait_for("the types of the first service", || (listed("shop") == (1_000, 500)).then_some(()));
    let _board = declare("board", 3);
    wait_for("the types of the second service", || (listed("board") == (3, 503)).then_some(()));
    assert_eq!(listed("shop"), (997, 503));
    let log = server.log();
    let line =
        "the limit on record types is reached: fields and units of some are not kept, their records are";
    assert!(log.contains(line) && log.contains("lost=500") && log.contains("shop"), "{log}");
}
