//! Tests the Prometheus API as Grafana and other clients use it: paths, methods, JSON, errors.

use serde_json::{Value, json};

use crate::support::{Response, Server};

const LINES: &str = "\
http_requests,job=shop,code=200 value=10 1700000000
http_requests,job=shop,code=200 value=70 1700000060
http_requests,job=shop,code=500 value=1 1700000000
http_requests,job=shop,code=500 value=4 1700000060
temperature,room=küche value=21.5 1700000060
";
const FORM: &[(&str, &str)] = &[("Content-Type", "application/x-www-form-urlencoded")];

fn server() -> (tempfile::TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let answer = server.post("/write?precision=s", &[], LINES.as_bytes());
    assert_eq!(answer.status, 204, "{}", answer.text());
    (data, server)
}

fn ok(answer: &Response) -> Value {
    let body = answer.json();
    assert_eq!((answer.status, &body["status"]), (200, &json!("success")), "{body}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    body["data"].clone()
}

#[test]
fn the_health_check_of_grafana_succeeds() {
    let (_data, server) = server();
    let expect = json!({"resultType": "scalar", "result": [4, "2"]});
    assert_eq!(ok(&server.get("/api/v1/query?query=1%2B1&time=4")), expect);
    assert_eq!(ok(&server.post("/api/v1/query", FORM, b"query=1%2B1&time=4")), expect);
    let build = ok(&server.get("/api/v1/status/buildinfo"));
    assert!(build["version"].is_string() && build.get("features").is_none(), "{build}");
    assert_eq!(ok(&server.get("/api/v1/metadata")), json!({}));
}

#[test]
fn instant_queries_return_every_type_of_result() {
    let (_data, server) = server();
    let check = |query: &str, expect: Value| {
        let data = ok(&server.get(&format!("/api/v1/query?time=1700000060&query={query}")));
        assert_eq!(data, expect, "{query}");
    };
    check(
        "temperature",
        json!({"resultType": "vector", "result": [
            {"metric": {"__name__": "temperature", "room": "küche"}, "value": [1700000060, "21.5"]}]}),
    );
    check(
        "sum(http_requests)",
        json!({"resultType": "vector", "result": [{"metric": {}, "value": [1700000060, "74"]}]}),
    );
    check("%22text%22", json!({"resultType": "string", "result": [1700000060, "text"]}));
    check("-1/0", json!({"resultType": "scalar", "result": [1700000060, "-Inf"]}));
    check("0/0", json!({"resultType": "scalar", "result": [1700000060, "NaN"]}));
    check("nothing_here", json!({"resultType": "vector", "result": []}));
    check(
        "http_requests{code='500'}[2m]",
        json!({"resultType": "matrix", "result": [{
            "metric": {"__name__": "http_requests", "code": "500", "job": "shop"},
            "values": [[1700000000, "1"], [1700000060, "4"]]}]}),
    );
}

#[test]
fn range_queries_accept_forms_fractions_and_rfc_3339() {
    let (_data, server) = server();
    let body = b"query=http_requests{code=\"200\"}&start=1700000000.000&end=1700000060.000&step=30.0";
    let expect = json!({"resultType": "matrix", "result": [{
        "metric": {"__name__": "http_requests", "code": "200", "job": "shop"},
        "values": [[1700000000, "10"], [1700000030, "10"], [1700000060, "70"]]}]});
    assert_eq!(ok(&server.post("/api/v1/query_range", FORM, body)), expect);
    let rfc = "/api/v1/query_range?query=rate(http_requests{code=%22200%22}[2m])\
               &start=2023-11-14T22:14:20Z&end=2023-11-14T22:14:20Z&step=1m";
    let data = ok(&server.get(rfc));
    assert_eq!(data["result"][0]["values"][0][0], 1700000060);
}

#[test]
fn labels_and_series_are_sorted_and_limited() {
    let (_data, server) = server();
    assert_eq!(ok(&server.get("/api/v1/labels")), json!(["__name__", "code", "job", "room"]));
    assert_eq!(ok(&server.post("/api/v1/labels", FORM, b"match[]=temperature")), json!(["__name__", "room"]));
    assert_eq!(ok(&server.get("/api/v1/label/code/values")), json!(["200", "500"]));
    assert_eq!(ok(&server.get("/api/v1/label/code/values?match[]=temperature")), json!([]));
    assert_eq!(ok(&server.get("/api/v1/label/U____name__/values")), json!([]));
    let series = ok(&server.post("/api/v1/series", FORM, b"match[]=http_requests&match[]=temperature"));
    let names: Vec<&Value> = series.as_array().unwrap().iter().map(|s| &s["__name__"]).collect();
    assert_eq!(names, ["http_requests", "http_requests", "temperature"]);
    for path in ["/api/v1/labels?limit=1", "/api/v1/series?match[]=http_requests&limit=1"] {
        let body = server.get(path).json();
        assert_eq!(body["data"].as_array().map(Vec::len), Some(1), "{path}");
        assert_eq!(body["warnings"], json!(["results truncated due to limit"]), "{path}");
    }
    let body = server.get("/api/v1/query?query=http_requests&time=1700000060&limit=1").json();
    assert_eq!(body["data"]["result"].as_array().map(Vec::len), Some(1));
    assert!(body["warnings"].is_array());
}

#[test]
fn selectors_of_one_request_are_limited() {
    let (_data, server) = server();
    let ask = |count| server.get(&format!("/api/v1/labels?{}", vec!["match[]=temperature"; count].join("&")));
    assert_eq!(ok(&ask(64)), json!(["__name__", "room"]));
    let answer = ask(65);
    let body = answer.json();
    assert_eq!((answer.status, &body["errorType"]), (422, &json!("execution")), "{body}");
    assert_eq!(body["error"], "65 parameters \"match[]\" are over 64: send several requests");
}

#[test]
fn errors_have_type_status_and_place() {
    let (_data, server) = server();
    let fails = |path: &str, status: u16, kind: &str, part: &str| {
        let answer = server.get(path);
        let body = answer.json();
        assert_eq!((answer.status, &body["status"]), (status, &json!("error")), "{path}: {body}");
        assert_eq!(body["errorType"], kind, "{path}");
        assert!(body["error"].as_str().unwrap().contains(part), "{path}: {body}");
    };
    fails("/api/v1/query", 400, "bad_data", "\"query\" is missing");
    fails("/api/v1/query?query=up&time=soon", 400, "bad_data", "\"time\": \"soon\"");
    fails("/api/v1/query?query=sum(", 400, "bad_data", "");
    fails("/api/v1/query_range?query=up&start=0&end=1", 400, "bad_data", "\"step\" is missing");
    fails("/api/v1/query_range?query=up&start=0&end=1&step=0", 400, "bad_data", "\"step\": \"0\"");
    fails("/api/v1/query_range?query=up&start=2&end=1&step=1", 400, "bad_data", "\"end\"");
    fails("/api/v1/query_range?query=up&start=0&end=11001&step=1", 422, "execution", "11000");
    fails("/api/v1/series", 400, "bad_data", "match[]");
    fails("/api/v1/series?match[]={", 400, "bad_data", "");
    fails("/api/v1/labels?limit=x", 400, "bad_data", "\"limit\": \"x\"");
    fails("/api/v1/nothing", 404, "not_found", "/api/v1/nothing");
}

#[test]
fn answers_are_compressed_on_request() {
    let (_data, server) = server();
    let mut lines = String::new();
    for i in 0..200 {
        lines.push_str(&format!("many,number={i} value={i} 1700000060\n"));
    }
    server.post("/write?precision=s", &[], lines.as_bytes());
    let path = "/api/v1/query?query=many&time=1700000060";
    let plain = server.get(path);
    let packed = server.request("GET", path, &[("Accept-Encoding", "gzip")], b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 4 < plain.body.len());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed.body[..]), &mut text).unwrap();
    assert_eq!(text, plain.text());
}

#[test]
fn stats_count_the_data_read() {
    let (_data, server) = server();
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    let ask = |more: &str| ok(&server.get(&format!("/api/v1/query?time=1700000060{more}")));
    assert!(ask("&query=temperature").get("stats").is_none());
    assert!(ask("&query=temperature&stats=false").get("stats").is_none());
    let stats = ask("&query=http_requests[2m]&stats=true")["stats"].clone();
    assert_eq!(stats["samples"]["totalQueryableSamples"], json!(4), "{stats}");
    assert_eq!(stats["valuesDecoded"], json!(4), "{stats}");
    assert!(
        stats["chunks"]["decoded"].as_u64() >= Some(1) && stats["bytesRead"].as_u64() > Some(0),
        "{stats}"
    );
    assert!(stats["timings"]["execTotalTime"].as_f64() > Some(0.0), "{stats}");
    // The header of a chunk within the window states the count, so no value is decoded.
    let data = ask("&query=count_over_time(http_requests{code='200'}[1h])&stats=all");
    assert_eq!(data["result"][0]["value"], json!([1700000060, "2"]));
    let stats = &data["stats"];
    assert_eq!((&stats["chunks"]["summarised"], &stats["valuesDecoded"]), (&json!(1), &json!(0)), "{stats}");
}

#[test]
fn functions_can_return_range_vectors() {
    let (_data, server) = server();
    let data =
        ok(&server.get("/api/v1/query?time=1700000060&query=derivative(http_requests{code='200'}[2m])"));
    let expect = json!([{"metric": {"code": "200", "job": "shop"}, "values": [[1700000060, "1"]]}]);
    assert_eq!(data, json!({"resultType": "matrix", "result": expect}));
}
