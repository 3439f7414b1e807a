//! `tacho demo`: shows the whole path of records on one machine: a server, an application with the agent, load, and the
//! recorded results.

mod child;
mod findings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tacho_lab as lab;

use super::ask;
use super::load::{drive, run_from_clock};
use crate::failure::Failure;
use crate::signal;
use child::{Child, Output};

/// Record an example application under load for half a minute and show the results
///
/// The demo starts a server with a new data directory, and the bulletin board with the Java agent. It puts the bulletin
/// board under load, prints the results, and keeps running so that you can open the page of the server. Ctrl-C ends everything.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho demo
  tacho demo --duration 10s --exit
  tacho demo --data ./history     # keep the records")]
pub struct Demo {
    /// The Java agent
    #[arg(long, value_name = "JAR", default_value = "agent/java/target/tachograph-agent.jar")]
    agent: PathBuf,
    /// The example application
    #[arg(
        long,
        value_name = "JAR",
        default_value = "examples/bulletin-board/java/target/bulletin-board.jar"
    )]
    app: PathBuf,
    /// Directory for the data directory and the logs; must not exist yet (default: a temporary one, removed at the end)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How long the load lasts
    #[arg(long, default_value = "30s", value_parser = ask::wait)]
    duration: Duration,
    /// Connections of the load
    #[arg(long, short, default_value_t = 8, value_name = "N")]
    connections: usize,
    /// End after printing the results
    #[arg(long)]
    exit: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

const MIX: &str = "50 GET /ads?page={1..40}
30 GET /ads/{1..1000}
10 GET /search?word=bicycle
5 GET /search?word=lamp
5 POST /ads title=Lamp {1..9999}&text=Shines well, hardly used&contact=demo@example.org&price={1..99}";

const SERVICE: &str = "bulletin-board";

impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        for (what, jar, goal) in [("agent", &self.agent, "agent"), ("application", &self.app, "example")] {
            if !jar.is_file() {
                return Err(Failure::usage(format!("no {what} at {}", jar.display())).hint(format!(
                    "`make demo` builds it; or name it with --{}",
                    if goal == "agent" { goal } else { "app" }
                )));
            }
        }
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        runtime.block_on(async {
            let stop = signal::stop().map_err(Failure::new)?;
            tokio::select! {
                result = self.demo() => result,
                // When the demo is dropped, its child processes are ended.
                () = stop => Ok(()),
            }
        })
    }

    async fn demo(&self) -> Result<(), Failure> {
        let place = Place::new(self.data.as_deref())?;
        let mut server = start_server(&place).await?;
        let http = server.address("http").await?;
        let records = server.address("records").await?;
        let mut app = start_app(self, &place, &records).await?;
        let target = app.target.clone();
        wait_until_it_answers(&mut app.child, &target).await?;

        eprintln!("load: {} connections for {:?} on http://{target}", self.connections, self.duration);
        // Ctrl-C ends the whole demo, so the load needs no signal.
        let report = drive(self.settings(target), std::future::pending()).await.map_err(Failure::new)?;
        let found = findings::collect(&http, report).await?;
        if self.json {
            println!("{}", found.to_json());
        } else {
            found.print();
        }
        if !self.exit {
            println!("\nthe page: http://{http}/");
            println!("more:     tacho graph --service {SERVICE} --server http://{http}");
            eprintln!("server and application keep running; Ctrl-C ends them");
            // The signal handler in `run` ends this wait.
            std::future::pending::<()>().await;
        }
        app.child.stop().await;
        server.stop().await;
        found.verdict()
    }

    fn settings(&self, target: String) -> lab::Settings {
        lab::Settings {
            target,
            connections: self.connections,
            stop: lab::Stop::After(self.duration),
            timeout: Duration::from_secs(10),
            mix: lab::Mix::parse(MIX).expect("the demo's own mix is valid"),
            run: run_from_clock(),
        }
    }
}

/// The directory of the demo's files. A temporary directory is removed at the end.
struct Place {
    dir: PathBuf,
    temporary: bool,
}

impl Place {
    fn new(wanted: Option<&Path>) -> Result<Self, Failure> {
        let temporary = wanted.is_none();
        let dir = wanted.map_or_else(
            || std::env::temp_dir().join(format!("tachograph-demo-{}", std::process::id())),
            Path::to_path_buf,
        );
        if dir.exists() {
            return Err(Failure::usage(format!("{} exists already", dir.display()))
                .hint("the demo needs a new data directory: name another with --data"));
        }
        std::fs::create_dir_all(&dir)
            .map_err(|e| Failure::new(format!("cannot make {}: {e}", dir.display())))?;
        Ok(Self { dir, temporary })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.temporary {
            // Files that cannot be removed remain in the system's temporary directory, which is harmless.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

async fn start_server(place: &Place) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(Failure::new)?;
    let data = place.dir.join("data").display().to_string();
    let http = format!("127.0.0.1:{}", free_port(7070));
    let records = format!("127.0.0.1:{}", free_port(7071));
    let args = ["serve", "--data", &data, "--http", &http, "--records", &records];
    Child::start("server", &program, &args, &[], Output::Addresses, &place.dir.join("server.log"))
}

struct App {
    child: Child,
    target: String,
}

async fn start_app(demo: &Demo, place: &Place, records: &str) -> Result<App, Failure> {
    let java =
        std::env::var_os("JAVA_HOME").map_or_else(|| "java".into(), |home| Path::new(&home).join("bin/java"));
    let port = free_port(8080).to_string();
    let agent = format!("-javaagent:{}", demo.agent.display());
    let jar = demo.app.display().to_string();
    let args = [&agent, "-Xmx512m", "-jar", &jar, "--port", &port];
    let environment = [
        ("TACHO_SERVER", records),
        ("TACHO_SERVICE", SERVICE),
        ("TACHO_INCLUDE", "bulletinboard..*"),
        ("TACHO_EXCLUDE", "bulletinboard.model..*"),
    ];
    let child = Child::start(
        "application",
        &java,
        &args,
        &environment,
        Output::Log,
        &place.dir.join("application.log"),
    )?;
    Ok(App { child, target: format!("127.0.0.1:{port}") })
}

/// The port `wanted` if no other process uses it, else a free port.
fn free_port(wanted: u16) -> u16 {
    let bind = |port| std::net::TcpListener::bind(("127.0.0.1", port)).and_then(|l| l.local_addr());
    bind(wanted).or_else(|_| bind(0)).map_or(wanted, |address| address.port())
}

async fn wait_until_it_answers(child: &mut Child, target: &str) -> Result<(), Failure> {
    for _ in 0..600 {
        child.check()?;
        if tokio::net::TcpStream::connect(target).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(Failure::new(format!("the application does not listen on {target} after 60 s"))
        .hint(child.log_hint()))
}
