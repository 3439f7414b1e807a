//! The command line: one file for each command.

mod ask;
mod cardinality;
mod delete;
mod demo;
mod entries;
mod export;
mod failure;
mod graph;
mod import;
mod inspect;
mod load;
mod merge;
mod operations;
mod query;
mod serve;
mod trace;
mod traces;
mod tune;

pub use failure::Failure;

/// Records what software does while it runs, keeps it, and answers questions about it.
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
    Entries(entries::Entries),
    Traces(traces::Traces),
    Trace(trace::Trace),
    Operations(operations::Operations),
    Graph(graph::Graph),
    Load(load::Load),
    Import(import::Import),
    Export(export::Export),
    Tune(tune::Tune),
    Inspect(inspect::Inspect),
    Cardinality(cardinality::Cardinality),
    Merge(merge::Merge),
    Delete(delete::Delete),
}

pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Demo(demo) => demo.run(),
        Command::Query(query) => query.run(),
        Command::Entries(entries) => entries.run(),
        Command::Traces(traces) => traces.run(),
        Command::Trace(trace) => trace.run(),
        Command::Operations(operations) => operations.run(),
        Command::Graph(graph) => graph.run(),
        Command::Load(load) => load.run(),
        Command::Import(import) => import.run(),
        Command::Export(export) => export.run(),
        Command::Tune(tune) => tune.run(),
        Command::Inspect(inspect) => inspect.run(),
        Command::Cardinality(cardinality) => cardinality.run(),
        Command::Merge(merge) => merge.run(),
        Command::Delete(delete) => delete.run(),
    }
}
