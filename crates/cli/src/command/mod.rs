//! The command line: one module for each command, and modules that several commands use.

mod agents;
mod ask;
mod attach;
mod backup;
mod cardinality;
mod check;
mod delete;
mod demo;
mod entries;
mod export;
mod findings;
mod graph;
mod import;
mod inspect;
mod load;
mod mark;
mod merge;
mod mistake;
mod operations;
mod probes;
mod queries;
mod query;
mod repair;
mod restore;
mod serve;
mod token;
mod trace;
mod traces;
mod tune;
mod unmatched;
mod variables;

pub use mistake::mistake;

use crate::failure::Failure;
use crate::terminal::out;

/// Records, stores and queries the history of running software: calls, metrics and events.
#[derive(clap::Parser)]
#[command(name = "tacho", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    Query(query::Query),
    Queries(queries::Queries),
    Entries(entries::Entries),
    Traces(traces::Traces),
    Trace(trace::Trace),
    Operations(operations::Operations),
    Graph(graph::Graph),
    Load(load::Load),
    Agents(agents::Agents),
    Probes(probes::Probes),
    Attach(attach::Attach),
    Import(import::Import),
    Export(export::Export),
    Tune(tune::Tune),
    Inspect(inspect::Inspect),
    Check(check::Check),
    Repair(repair::Repair),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Cardinality(cardinality::Cardinality),
    Merge(merge::Merge),
    Delete(delete::Delete),
    Token(token::Token),
}

pub fn run(cli: Cli) -> Result<(), Failure> {
    // The server logs its unknown variables itself.
    if !matches!(cli.command, Command::Serve(_)) {
        variables::warn();
    }
    cli.command.run()?;
    match out::fault() {
        Some(fault) => Err(Failure::new(format!("cannot write to stdout: {fault}"))),
        None => Ok(()),
    }
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Demo(demo) => demo.run(),
            Self::Query(query) => query.run(),
            Self::Queries(queries) => queries.run(),
            Self::Entries(entries) => entries.run(),
            Self::Traces(traces) => traces.run(),
            Self::Trace(trace) => trace.run(),
            Self::Operations(operations) => operations.run(),
            Self::Graph(graph) => graph.run(),
            Self::Load(load) => load.run(),
            Self::Agents(agents) => agents.run(),
            Self::Probes(probes) => probes.run(),
            Self::Attach(attach) => attach.run(),
            Self::Import(import) => import.run(),
            Self::Export(export) => export.run(),
            Self::Tune(tune) => tune.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Check(check) => check.run(),
            Self::Repair(repair) => repair.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::Cardinality(cardinality) => cardinality.run(),
            Self::Merge(merge) => merge.run(),
            Self::Delete(delete) => delete.run(),
            Self::Token(token) => token.run(),
        }
    }
}
