//! Logs like those of real programs, generated from a seed.

use tacho_model::{Body, Entry};

use super::rng::Rng;

/// A log of a program, with one text per entry.
pub struct Log {
    pub name: &'static str,
    line: fn(&mut State) -> String,
    /// Maximum size of a chunk, including times and header, as a fraction of the size of the text. The first number is for a
    /// sealed chunk with 180 lines, the second for a full merged chunk.
    pub shares_max: [f64; 2],
}

/// One line per second.
pub fn entries(lines: &[String]) -> Vec<Entry> {
    let entry =
        |(n, line): (i64, &String)| Entry { at: n * 1_000_000_000, body: Body::Text(line.as_str().into()) };
    (0..).zip(lines).map(entry).collect()
}

pub const ALL: [Log; 7] = [
    Log { name: "web shop (Java)", line: shop, shares_max: [0.108, 0.062] },
    Log { name: "access log", line: access, shares_max: [0.102, 0.059] },
    Log { name: "database", line: database, shares_max: [0.066, 0.033] },
    Log { name: "sshd and cron", line: system, shares_max: [0.182, 0.116] },
    Log { name: "JSON lines", line: json, shares_max: [0.188, 0.129] },
    Log { name: "garbage collector", line: collector, shares_max: [0.081, 0.054] },
    Log { name: "message broker", line: broker, shares_max: [0.1, 0.058] },
];

impl Log {
    /// The first lines of the log of this host. Each host has other numbers and another order of the texts.
    pub fn lines(&self, host: u64, count: usize) -> Vec<String> {
        let mut state =
            State { rng: Rng(host * 7_919 + 5), now_ms: 1_795_289_812_483, id: host << 32, heap: 400 };
        (0..count).map(|_| (self.line)(&mut state)).collect()
    }
}

struct State {
    rng: Rng,
    now_ms: u64,
    /// A counter of orders, requests and similar.
    id: u64,
    heap: u64,
}

impl State {
    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.rng.below(from.len() as u64) as usize]
    }

    /// A random number below `limit`. Small numbers are more frequent.
    fn seldom(&mut self, limit: u64) -> u64 {
        let share = self.rng.unit();
        (share * share * share * limit as f64) as u64
    }

    fn tick(&mut self, median_ms: f64) {
        self.now_ms += self.rng.around(median_ms, 1.0);
    }

    /// Time of day with milliseconds.
    fn clock(&self, point: char) -> String {
        let (seconds, ms) = (self.now_ms / 1_000 % 86_400, self.now_ms % 1_000);
        format!("{:02}:{:02}:{:02}{point}{ms:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.rng.next(), self.rng.next());
        let tail = b & 0xffff_ffff_ffff;
        format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{tail:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff, b >> 52)
    }

    fn address(&mut self) -> String {
        let (a, b) = (self.seldom(40), self.seldom(250));
        format!("10.{}.{a}.{b}", 20 + a % 3)
    }
}

const USERS: [&str; 12] =
    ["ada", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj"];
const PATHS: [&str; 9] = [
    "/",
    "/cart",
    "/checkout",
    "/login",
    "/search",
    "/product/",
    "/api/v1/orders/",
    "/static/app.js",
    "/api/v1/users/",
];

fn shop(state: &mut State) -> String {
    state.tick(120.0);
    state.id += 1 + state.rng.below(3);
    let head = |state: &mut State, level: &str, class: &str| {
        format!(
            "2026-11-22 {} {level} [http-nio-8080-exec-{}] c.e.shop.{class} - ",
            state.clock(','),
            1 + state.rng.below(40)
        )
    };
    match state.rng.below(100) {
        0..40 => {
            let (id, ms, user) = (state.id, state.rng.around(35.0, 0.8), state.pick(&USERS));
            head(state, "INFO ", "order.OrderService")
                + &format!("order {id} of user {user} placed in {ms} ms, {} items", 1 + state.seldom(20))
        }
        40..65 => {
            let (id, cents) = (state.uuid(), state.rng.around(4_000.0, 1.0));
            head(state, "INFO ", "pay.PaymentClient")
                + &format!("payment {id} accepted: {}.{:02} EUR", cents / 100, cents % 100)
        }
        65..85 => {
            let (key, hits) = (state.seldom(5_000), state.rng.below(100));
            head(state, "DEBUG", "cache.ProductCache")
                + &format!("miss for product-{key}, hit ratio {hits}.{}%", state.rng.below(10))
        }
        85..96 => {
            let (id, left) = (state.seldom(5_000), state.rng.below(9));
            head(state, "WARN ", "stock.StockService")
                + &format!(
                    "product {id} is running low: {left} left in warehouse {}",
                    state.pick(&["north", "south", "harbour"])
                )
        }
        _ => {
            let order = state.id;
            let failed = head(state, "ERROR", "order.OrderController") + &format!("order {order} failed");
            failed + &trace(state)
        }
    }
}

fn trace(state: &mut State) -> String {
    let causes = [
        "java.net.SocketTimeoutException: Read timed out",
        "org.postgresql.util.PSQLException: ERROR: deadlock detected",
        "java.lang.NullPointerException: Cannot invoke \"c.e.shop.order.Item.price()\" because \"item\" is null",
    ];
    let frames = [
        "c.e.shop.order.OrderService.place(OrderService.java:118)",
        "c.e.shop.order.OrderController.post(OrderController.java:61)",
        "jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:103)",
        "java.lang.reflect.Method.invoke(Method.java:580)",
        "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke(InvocableHandlerMethod.java:255)",
        "org.springframework.web.servlet.DispatcherServlet.doDispatch(DispatcherServlet.java:1088)",
        "org.apache.catalina.core.ApplicationFilterChain.doFilter(ApplicationFilterChain.java:140)",
        "org.apache.tomcat.util.threads.ThreadPoolExecutor$Worker.run(ThreadPoolExecutor.java:659)",
        "java.lang.Thread.run(Thread.java:1583)",
    ];
    let skip = state.rng.below(3) as usize;
    let lines: Vec<String> = frames[skip..].iter().map(|frame| format!("\n\tat {frame}")).collect();
    format!("\n{}{}", state.pick(&causes), lines.concat())
}

fn access(state: &mut State) -> String {
    state.tick(40.0);
    let agents = [
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1",
        "curl/8.9.1",
        "kube-probe/1.31",
    ];
    let path = state.pick(&PATHS);
    let item =
        if path.len() > 1 && path.ends_with('/') { state.seldom(20_000).to_string() } else { String::new() };
    let status = [200, 200, 200, 200, 200, 304, 302, 404, 500][state.seldom(9) as usize];
    let (address, time, bytes) = (state.address(), state.clock('.'), state.rng.around(4_000.0, 1.2));
    let (method, agent, ms) =
        (state.pick(&["GET", "GET", "GET", "POST"]), state.pick(&agents), state.rng.around(20.0, 1.0));
    let time = &time[..8];
    format!(
        "{address} - - [22/Nov/2026:{time} +0000] \"{method} {path}{item} HTTP/1.1\" {status} {bytes} \"-\" \"{agent}\" 0.{ms:03}"
    )
}

fn database(state: &mut State) -> String {
    state.tick(80.0);
    let head = format!(
        "2026-11-22 {} UTC [{}] shop@orders LOG:  ",
        state.clock('.'),
        4_100 + state.rng.below(30) * 7
    );
    let (us, id) = (state.rng.around(900.0, 1.5), state.seldom(1_000_000));
    let duration = format!("duration: {}.{:03} ms", us / 1_000, us % 1_000);
    head + &match state.rng.below(10) {
        0..5 => format!(
            "{duration}  execute <unnamed>: SELECT o.id, o.total, o.state FROM orders o \
             WHERE o.customer_id = $1 ORDER BY o.id DESC LIMIT 20"
        ),
        5..8 => format!(
            "{duration}  statement: UPDATE stock SET amount = amount - {} WHERE product_id = {id}",
            1 + state.seldom(9)
        ),
        8 => format!(
            "checkpoint complete: wrote {} buffers ({}.{}%); 0 WAL file(s) added, {} removed, 0 recycled; write={}.{:03} s",
            id % 9_000,
            id % 60,
            id % 10,
            id % 4,
            us / 100,
            us % 1_000
        ),
        _ => format!(
            "connection authorized: user=shop database=orders application_name=pool-{}",
            1 + state.rng.below(12)
        ),
    }
}

fn system(state: &mut State) -> String {
    state.tick(30_000.0);
    let (pid, address, port) =
        (1_000 + state.rng.below(30_000), state.address(), 30_000 + state.rng.below(30_000));
    let user = state.pick(&USERS);
    match state.rng.below(10) {
        0..3 => format!(
            "sshd[{pid}]: Accepted publickey for {user} from {address} port {port} ssh2: ED25519 SHA256:{:016x}{:08x}",
            state.rng.next(),
            state.rng.below(1 << 32)
        ),
        3..5 => {
            format!("sshd[{pid}]: Failed password for invalid user {user} from {address} port {port} ssh2")
        }
        5..8 => format!("CRON[{pid}]: (root) CMD (   cd / && run-parts --report /etc/cron.hourly)"),
        8 => format!("systemd[1]: Started Session {} of User {user}.", state.seldom(4_000)),
        _ => format!(
            "kernel: [{}.{:06}] eth0: renamed from veth{:07x}",
            state.now_ms / 1_000 % 1_000_000,
            state.rng.below(1_000_000),
            state.rng.below(1 << 28)
        ),
    }
}

fn json(state: &mut State) -> String {
    state.tick(200.0);
    state.id += 1;
    let (trace, span) = (format!("{:016x}{:016x}", state.rng.next(), state.rng.next()), state.rng.next());
    let (level, status) =
        (state.pick(&["info", "info", "info", "warn"]), [200, 200, 201, 404, 503][state.seldom(5) as usize]);
    let (path, ms) = (state.pick(&PATHS), state.rng.around(15.0, 1.0));
    let time = state.clock('.');
    format!(
        "{{\"ts\":\"2026-11-22T{time}Z\",\"level\":\"{level}\",\"logger\":\"gateway\",\
         \"trace_id\":\"{trace}\",\"span_id\":\"{span:016x}\",\
         \"msg\":\"request completed\",\"path\":\"{path}\",\"status\":{status},\"latency_ms\":{ms},\"seq\":{}}}",
        state.id
    )
}

fn collector(state: &mut State) -> String {
    state.tick(2_000.0);
    state.id += 1;
    let (number, before) = (state.id & 0xffff_ffff, state.heap + 300 + state.rng.below(60));
    state.heap = 400 + (state.heap - 400 + state.rng.below(9)) % 500;
    let ms = state.rng.around(4_200.0, 0.4);
    let uptime = state.now_ms % 10_000_000;
    let pause = state.pick(&[
        "Young (Normal) (G1 Evacuation Pause)",
        "Young (Normal) (G1 Evacuation Pause)",
        "Young (Concurrent Start) (G1 Humongous Allocation)",
    ]);
    format!(
        "[{}.{:03}s][info][gc] GC({number}) Pause {pause} {before}M->{}M(2048M) {}.{:03}ms",
        uptime / 1_000,
        uptime % 1_000,
        state.heap,
        ms / 1_000,
        ms % 1_000
    )
}

fn broker(state: &mut State) -> String {
    state.tick(900.0);
    state.id += 40 + state.rng.below(30);
    let (topic, partition, offset) =
        (state.pick(&["orders", "payments", "clicks", "mails"]), state.rng.below(24), state.id & 0xffff_ffff);
    let head = format!("[2026-11-22 {}] ", state.clock(','));
    head + &match state.rng.below(4) {
        0 => format!(
            "INFO [Log partition={topic}-{partition}, dir=/var/lib/kafka] \
             Rolled new log segment at offset {offset} in {} ms. (kafka.log.Log)",
            state.rng.below(20)
        ),
        1 => format!(
            "INFO [ReplicaFetcher replicaId={}, leaderId={}, fetcherId=0] \
             Truncating partition {topic}-{partition} to local high watermark {offset} (kafka.server.ReplicaFetcherThread)",
            state.rng.below(5),
            state.rng.below(5)
        ),
        2 => format!(
            "INFO [GroupCoordinator {}]: Member consumer-{topic}-{}-{} in group \
             {topic}-mailer has left (kafka.coordinator.group.GroupCoordinator)",
            state.rng.below(5),
            1 + state.rng.below(9),
            state.uuid()
        ),
        _ => format!(
            "INFO [ProducerStateManager partition={topic}-{partition}] \
             Wrote producer snapshot at offset {offset} with {} producer ids \
             in {} ms. (kafka.log.ProducerStateManager)",
            state.rng.below(50),
            state.rng.below(9)
        ),
    }
}
