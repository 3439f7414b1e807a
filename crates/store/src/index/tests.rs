//! Tests series, matchers, groups and limits of the index.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_model::{Kind, Labels, MatchOp, Matcher, SeriesId};

use super::admission::Refusal;
use super::*;
use crate::journal::format::DEFINITIONS_BYTES_MAX;

fn index() -> Index {
    let mut index = Index::default();
    let series: [&[(&str, &str)]; 4] = [
        &[("__name__", "up"), ("job", "a"), ("zone", "x")],
        &[("__name__", "up"), ("job", "b")],
        &[("__name__", "down"), ("job", "a")],
        &[("__name__", "up"), ("job", "ab")],
    ];
    for pairs in series {
        let labels = Arc::new(Labels::new(pairs.iter().copied()).unwrap());
        index.add(Kind::Sample, labels.id(), &labels);
    }
    index
}

fn check(matchers: &[(&str, MatchOp, &str)], expect: &[&str]) {
    let matchers: Vec<Matcher> =
        matchers.iter().map(|(label, op, value)| Matcher::new(label, *op, value).unwrap()).collect();
    let found: Vec<String> =
        index().find(Kind::Sample, &matchers).iter().map(|(_, labels)| labels.to_string()).collect();
    assert_eq!(found, expect, "{matchers:?}");
}

#[test]
fn matchers_select_the_expected_series() {
    use MatchOp::{Equal, NotEqual, NotRegex, Regex};
    let [a, b, c, ab] = [r#"up{job="a", zone="x"}"#, r#"up{job="b"}"#, r#"down{job="a"}"#, r#"up{job="ab"}"#];
    check(&[], &[a, b, c, ab]);
    check(&[("__name__", Equal, "up")], &[a, b, ab]);
    check(&[("__name__", Equal, "up"), ("job", Equal, "a")], &[a]);
    check(&[("job", Regex, "a.*")], &[a, c, ab]);
    check(&[("job", NotRegex, "a.*")], &[b]);
    check(&[("job", NotEqual, "a")], &[b, ab]);
    check(&[("zone", Equal, "")], &[b, c, ab]);
    check(&[("zone", NotEqual, "")], &[a]);
    check(&[("zone", Regex, "x|")], &[a, b, c, ab]);
    check(&[("zone", NotEqual, "y"), ("job", Regex, "a")], &[a, c]);
    check(&[("nowhere", Equal, "x")], &[]);
    check(&[("job", Equal, "nobody"), ("__name__", Equal, "up")], &[]);
}

#[test]
fn kinds_are_separate_and_counted() {
    let mut index = index();
    let labels = Arc::new(Labels::new([("__name__", "up"), ("job", "b")]).unwrap());
    index.add(Kind::Entry, labels.id(), &labels);
    index.add(Kind::Entry, labels.id(), &labels);
    assert_eq!(index.counts(), [4, 1, 0]);
    assert_eq!(index.len(), 4);
    assert_eq!(index.find(Kind::Entry, &[]).len(), 1);
    assert!(!index.is_persisted(Kind::Entry, labels.id()));
    index.set_persisted(Kind::Entry, labels.id());
    assert!(index.is_persisted(Kind::Entry, labels.id()));
    assert!(!index.is_persisted(Kind::Sample, labels.id()));
}

#[test]
fn names_and_values_are_those_of_the_selected_series() {
    let mut index = index();
    let labels = Arc::new(Labels::new([("__name__", "log"), ("level", "info"), ("job", "a")]).unwrap());
    index.add(Kind::Entry, labels.id(), &labels);
    let select =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(l, v)| vec![Matcher::equal(l, v)]).collect::<Vec<_>>();
    let names = |kind, pairs| index.label_names(kind, index.any_of(kind, &select(pairs)).as_deref());
    let values = |name, pairs| {
        let numbers = index.any_of(Kind::Sample, &select(pairs));
        index.label_values(Kind::Sample, name, numbers.as_deref())
    };
    assert_eq!(names(Kind::Sample, &[]), ["__name__", "job", "zone"]);
    assert_eq!(names(Kind::Entry, &[]), ["__name__", "job", "level"]);
    assert_eq!(names(Kind::Sample, &[("job", "b")]), ["__name__", "job"]);
    assert_eq!(names(Kind::Sample, &[("job", "b"), ("zone", "x")]), ["__name__", "job", "zone"]);
    assert_eq!(names(Kind::Sample, &[("job", "nobody")]), Vec::<String>::new());
    assert_eq!(values("job", &[]), ["a", "ab", "b"]);
    assert_eq!(values("job", &[("__name__", "down")]), ["a"]);
    assert_eq!(values("job", &[("__name__", "down"), ("job", "ab")]), ["a", "ab"]);
    assert_eq!(values("level", &[]), Vec::<String>::new());
    assert_eq!(values("nope", &[]), Vec::<String>::new());
}

#[test]
fn groups_keep_their_members_and_series_keep_their_home() {
    let mut index = index();
    let id = |number| index.id(number);
    let (pair, one) = (SeriesId(7), id(2));
    let group = index.add_group(pair, &[3, 0]);
    assert_eq!(index.add_group(one, &[2]), 1);
    assert_eq!(index.add_group(pair, &[3, 0]), group);
    let wide = index.add_group(SeriesId(8), &[0, 1, 2, 3]);
    assert_eq!(index.group(group), Group { id: pair, members: &[3, 0] });
    assert_eq!(index.group(wide).members, [0, 1, 2, 3]);
    assert_eq!((index.group_number(pair), index.group_number(SeriesId(9))), (Some(group), None));
    assert_eq!(index.home(0), Some((group, 1)));
    assert_eq!(index.home(1), Some((wide, 1)));
    assert_eq!(index.groups_of(0).collect::<Vec<_>>(), [(group, 1), (wide, 0)]);
    assert!(index.is_persisted(Kind::Sample, one));
    assert_eq!(index.groups().count(), 3);
}

#[test]
fn removed_series_are_not_found_and_may_return() {
    let mut index = index();
    let labels = index.labels_of(0);
    index.add(Kind::Entry, labels.id(), &labels);
    index.add_group(labels.id(), &[0]);
    index.add_group(SeriesId(1), &[0, 1]);
    index.remove(Kind::Sample, 0);
    assert_eq!((index.counts(), index.len()), ([3, 1, 0], 4));
    assert_eq!(index.label_names(Kind::Sample, None), ["__name__", "job"]);
    assert_eq!(index.of_kind(Kind::Sample).collect::<Vec<_>>(), [1, 2, 3]);
    index.remove(Kind::Entry, 0);
    index.remove(Kind::Entry, 0);
    assert_eq!((index.counts(), index.len()), ([3, 0, 0], 3));
    assert_eq!(index.number(labels.id()), None);
    assert_eq!(index.find(Kind::Sample, &[Matcher::equal("zone", "")]).len(), 3);
    let costs = index.cardinality(1, 9);
    assert_eq!((costs.labels.len(), costs.series_total), (2, 3));
    assert_eq!(index.add(Kind::Sample, labels.id(), &labels), 4, "a number was reused");
    assert_eq!(index.find(Kind::Sample, &[Matcher::equal("zone", "x")]).len(), 1);

    assert_eq!(index.home(0), Some((0, 0)));
    index.remove_group(0);
    index.remove_group(0);
    assert_eq!((index.home(0), index.home(1)), (Some((1, 0)), Some((1, 1))));
    assert_eq!(index.groups().collect::<Vec<_>>(), [1]);
    assert_eq!(index.group_number(labels.id()), None);
    assert_eq!(index.add_group(labels.id(), &[4]), 2);
}

#[test]
fn cardinality_is_counted_by_label() {
    let costs = index().cardinality(2, 10);
    assert_eq!((costs.series, costs.series_total, costs.series_max), ([4, 0, 0], 4, 10));
    assert_eq!(costs.names, [("up".to_owned(), 3), ("down".to_owned(), 1)]);
    let of = |name: &str| costs.labels.iter().find(|label| label.name == name).unwrap();
    assert_eq!((of("job").values, of("job").series, of("zone").series), (3, 4, 1));
    assert_eq!(of("job").top, [("a".to_owned(), 2), ("ab".to_owned(), 1)]);
    assert!(costs.labels.is_sorted_by_key(|label| std::cmp::Reverse(label.bytes)));
    assert!(costs.bytes > costs.labels.iter().map(|label| label.bytes).sum());
}

#[test]
fn only_new_series_above_a_limit_are_refused() {
    let index = index();
    let labels = |pairs: &[(&str, &str)]| Labels::new(pairs.iter().copied()).unwrap();
    let check = |bounds: Bounds, series: &[&[(&str, &str)]], expect: &[&str]| {
        let series: Vec<Labels> = series.iter().map(|pairs| labels(pairs)).collect();
        let mut admission = Admission::new(&index, bounds, 0);
        let refused: Vec<String> =
            series.iter().filter_map(|labels| admission.admit(labels).err()).map(|e| e.to_string()).collect();
        assert_eq!(refused, expect, "{bounds:?}");
    };
    let known: &[(&str, &str)] = &[("__name__", "up"), ("job", "b")];
    let bounds = Bounds { series_max: 5, label_names_max: 4, label_values_max: 4, bytes_max: usize::MAX };
    check(bounds, &[known, &[("job", "c")], &[("job", "c")]], &[]);
    check(bounds, &[&[("job", "c")], &[("job", "a")], known], &["limit of 5 series is reached"]);
    let bounds = Bounds { series_max: 9, ..bounds };
    check(
        bounds,
        &[&[("job", "c")], &[("job", "d")], &[("job", "a")], &[("job", "c"), ("zone", "x")]],
        &["label \"job\" already has 4 values, at most 4 are allowed (new: \"d\")"],
    );
    check(
        bounds,
        &[&[("one", "x")], &[("two", "x")], &[("one", "y")]],
        &["label \"two\" is new, and the limit of 4 names of labels is reached"],
    );
}

#[test]
fn memory_follows_added_and_removed_series_and_limits_new_ones() {
    let long = "v".repeat(2_000);
    let labels = |pairs: &[(&str, &str)]| Arc::new(Labels::new(pairs.iter().copied()).unwrap());
    let series: Vec<Arc<Labels>> =
        (0..50).map(|n| labels(&[("__name__", &format!("m{n}")), ("host", "a"), ("path", &long)])).collect();
    let mut index = Index::default();
    let mut sizes = vec![index.bytes()];
    for labels in &series {
        index.add(Kind::Sample, labels.id(), labels);
        sizes.push(index.bytes());
    }
    assert!(
        sizes.is_sorted() && sizes[50] < 2_000 + 50 * 400 + 1_000,
        "the shared label value must be kept only once: {sizes:?}"
    );
    assert_eq!(index.cardinality(1, 9).bytes, index.bytes());
    // The limit leaves 1,000 bytes. Only a new series with a new long label value exceeds it.
    let (other, known) = (labels(&[("__name__", "other"), ("path", &"w".repeat(2_000))]), series[7].clone());
    let short = labels(&[("__name__", "m8"), ("host", "b")]);
    let shares = labels(&[("__name__", "m9"), ("path", &long)]);
    let bounds =
        Bounds { series_max: 99, label_names_max: 9, label_values_max: 99, bytes_max: index.bytes() + 1_000 };
    let mut admission = Admission::new(&index, bounds, 0);
    assert_eq!(admission.admit(&other), Err(Refusal::Bytes { max: bounds.bytes_max }));
    assert_eq!(
        [&known, &short, &shares, &other].map(|l| admission.admit(l).is_ok()),
        [true, true, true, false]
    );
    (0..50).for_each(|number| index.remove(Kind::Sample, number));
    assert_eq!((index.bytes(), index.len()), (0, 0));
}

#[test]
fn series_and_groups_that_have_ended_take_no_memory() {
    let mut index = Index::default();
    let mut last: Vec<(SeriesId, Vec<u32>)> = Vec::new();
    for program in 0..500 {
        let mut add = |metric: u32| {
            let pairs = [("__name__", format!("m{metric}")), ("pod", format!("pod-{program}"))];
            let labels = Arc::new(Labels::new(pairs).unwrap());
            index.add(Kind::Sample, labels.id(), &labels)
        };
        let members: Vec<u32> = (0..100).map(&mut add).collect();
        let id = SeriesId(program);
        index.add_group(id, &members);
        last.push((id, members));
        if last.len() > 2 {
            let (group, members) = last.remove(0);
            index.remove_group(index.group_number(group).unwrap());
            members.into_iter().for_each(|number| index.remove(Kind::Sample, number));
        }
    }
    assert_eq!((index.len(), index.groups().count()), (200, 2));
    assert!(index.series.bytes() < 50_000, "{} bytes for 200 of 50,000 series", index.series.bytes());
    for (group, members) in last {
        assert_eq!(index.group(index.group_number(group).unwrap()).members, members);
    }
    // A caller may still have the number of a series that has ended.
    assert_eq!((index.labels_of(0).len(), index.id(0), index.home(0)), (0, SeriesId(0), None));
    assert!(!index.is_of(Kind::Sample, 0) && index.value_of(0, "pod").is_none());
    let postings = index.labels.values().flat_map(|label| label.values.values());
    let heap: usize = postings.map(|valued| valued.postings.heap_bytes()).sum();
    assert!(heap < 64 * 1_024, "{heap} bytes of postings for 200 series");
}

#[test]
fn labels_are_those_that_were_added_also_if_numbers_of_pairs_are_reused() {
    let labels = |pairs: &[(&str, &str)]| Arc::new(Labels::new(pairs.iter().copied()).unwrap());
    let all = [
        labels(&[("__name__", "up"), ("job", "a")]),
        labels(&[]),
        labels(&[("__name__", "up"), ("a", "job"), ("job", "up")]),
        labels(&[("__name__", "down"), ("job", "b"), ("zone", "x")]),
    ];
    let mut index = Index::default();
    let add = |index: &mut Index, labels: &Arc<Labels>| index.add(Kind::Sample, labels.id(), labels);
    for round in 0..3 {
        let numbers: Vec<u32> = all.iter().map(|labels| add(&mut index, labels)).collect();
        for (number, labels) in numbers.iter().zip(&all) {
            assert_eq!(
                (index.labels_of(*number), index.labels(labels.id())),
                (labels.clone(), Some(labels.clone()))
            );
            for name in ["__name__", "a", "job", "zone", "other"] {
                assert_eq!(index.value_of(*number, name), labels.get(name));
            }
        }
        // In each round, different series stay, so that the numbers of different pairs become unused.
        numbers.iter().skip(round).step_by(2).for_each(|number| index.remove(Kind::Sample, *number));
    }
}

#[test]
fn rare_labels_take_little_memory_in_a_large_index() {
    let mut index = Index::default();
    let add = |index: &mut Index, pairs: &[(String, &str)]| {
        let labels = Arc::new(Labels::new(pairs.iter().map(|(n, v)| (n, v))).unwrap());
        index.add(Kind::Sample, labels.id(), &labels);
    };
    (0..20_000).for_each(|n| add(&mut index, &[("__name__".to_owned(), &format!("m{n}"))]));
    for n in 0..50 {
        let pairs: Vec<(String, &str)> = (0..60).map(|l| (format!("l{n}_{l}"), "v")).collect();
        add(&mut index, &pairs);
    }
    let heap: usize =
        index.labels.values().filter_map(|l| l.carriers.as_ref()).map(Postings::heap_bytes).sum();
    assert!(heap < 10_000, "{heap} bytes for 3,000 labels");
    let numbers = index.any_of(Kind::Sample, &[vec![Matcher::equal("l7_3", "v")]]);
    assert_eq!(index.label_names(Kind::Sample, numbers.as_deref()).len(), 60);
}

#[test]
fn further_series_are_refused_when_the_labels_of_a_batch_exceed_the_limit() {
    let series: Vec<Labels> = (0..9).map(|n| Labels::new([("__name__", format!("m{n}"))]).unwrap()).collect();
    let bounds = Bounds { series_max: 99, label_names_max: 99, label_values_max: 99, bytes_max: 1 << 30 };
    let index = Index::default();
    let mut admission = Admission::new(&index, bounds, 0);
    admission.written = DEFINITIONS_BYTES_MAX - 3 * series[0].canonical_bytes();
    let admitted: Vec<_> = series.iter().map(|labels| admission.admit(labels)).collect();
    assert!(admitted[..3].iter().all(Result::is_ok));
    assert!(admitted[3..].iter().all(|a| *a == Err(Refusal::Written { max: DEFINITIONS_BYTES_MAX })));
}

fn any_series() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let value = || proptest::option::of("[ab]{0,2}");
    (value(), value(), value(), "[a-d]{1,2}").prop_map(|(x, y, z, name)| {
        let pairs = [("x", x), ("y", y), ("z", z), ("__name__", Some(name))];
        pairs.into_iter().filter_map(|(label, value)| Some((label, value?))).collect()
    })
}

fn any_matcher() -> impl Strategy<Value = Matcher> {
    let label = prop_oneof![Just("x"), Just("y"), Just("z"), Just("__name__"), Just("none")];
    let pattern = prop_oneof![
        3 => "[ab]{0,2}",
        1 => Just(".*".to_owned()),
        1 => Just(".+".to_owned()),
        2 => "[ab]\\.\\*|[ab]\\|[ab]{0,1}|\\.\\*[ab]|\\[ab\\]\\?",
    ];
    let op = prop_oneof![
        Just(MatchOp::Equal),
        Just(MatchOp::NotEqual),
        Just(MatchOp::Regex),
        Just(MatchOp::NotRegex)
    ];
    (label, op, pattern).prop_map(|(label, op, pattern)| Matcher::new(label, op, &pattern).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn selection_equals_a_check_of_every_series(
        series in proptest::collection::vec(any_series(), 0..400),
        matchers in proptest::collection::vec(any_matcher(), 0..4),
    ) {
        let mut index = Index::default();
        let mut all: Vec<Arc<Labels>> = Vec::new();
        for (nth, pairs) in series.into_iter().enumerate() {
            let labels = Arc::new(Labels::new(pairs).unwrap());
            // Every third series is added with entries only. It is found only if samples with the same labels are added.
            index.add(if nth % 3 == 2 { Kind::Entry } else { Kind::Sample }, labels.id(), &labels);
            if nth % 3 != 2 && !all.contains(&labels) {
                all.push(labels);
            }
        }
        let wanted = |labels: &&Arc<Labels>| matchers.iter().all(|matcher| matcher.matches(labels));
        let mut expect: Vec<String> = all.iter().filter(wanted).map(|labels| labels.to_string()).collect();
        let found = index.find(Kind::Sample, &matchers);
        prop_assert!(found.iter().all(|(id, labels)| index.labels(*id).as_ref() == Some(labels)));
        let mut found: Vec<String> = found.iter().map(|(_, labels)| labels.to_string()).collect();
        found.sort_unstable();
        expect.sort_unstable();
        prop_assert_eq!(found, expect);
        let numbers = index.any_of(Kind::Sample, std::slice::from_ref(&matchers));
        let names = index.label_names(Kind::Sample, numbers.as_deref());
        let expect: std::collections::BTreeSet<String> =
            all.iter().filter(wanted).flat_map(|l| l.iter().map(|(name, _)| name.to_owned())).collect();
        prop_assert_eq!(names, expect.into_iter().collect::<Vec<_>>());
        let values = index.label_values(Kind::Sample, "x", numbers.as_deref());
        let expect: std::collections::BTreeSet<String> =
            all.iter().filter(wanted).filter_map(|l| l.get("x").map(str::to_owned)).collect();
        prop_assert_eq!(values, expect.into_iter().collect::<Vec<_>>());
    }
}
