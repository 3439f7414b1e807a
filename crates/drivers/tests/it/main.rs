//! The tests of the embedded driver, except the conformance suites of all drivers. They are modules of one test binary, which is
//! linked faster than many.

mod calls;
mod common;
mod damage;
mod every_byte;
mod filters;
mod full_disk;
mod generations;
mod golden;
mod kept;
mod missing_end;
mod recovery;
mod rollups;
mod torn_end;
mod verify;
