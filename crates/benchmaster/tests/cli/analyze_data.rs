//! `analyze --data`: published examples as CSV files, and the answer in JSON and in words.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::place::{Place, stderr, stdout};

/// A published example by its name.
fn vector(id: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stats/tests/vectors/statistics.json");
    let all: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    all["vectors"].as_array().unwrap().iter().find(|v| v["id"] == id).unwrap().clone()
}

/// A two-level design in standard order as CSV: one column per factor, −1 and 1, the response `y` last.
fn two_level(names: &[&str], cells: &Value) -> String {
    let mut csv = format!("{},y\n", names.join(","));
    for (cell, values) in cells.as_array().unwrap().iter().enumerate() {
        let alone = vec![values.clone()];
        for value in values.as_array().unwrap_or(&alone) {
            let levels: Vec<_> =
                (0..names.len()).map(|j| if cell >> j & 1 == 1 { "1" } else { "-1" }).collect();
            csv += &format!("{},{value}\n", levels.join(","));
        }
    }
    csv
}

fn answer(place: &Place, args: &[&str]) -> Value {
    let all: Vec<&str> = ["analyze", "--json", "--data"].iter().chain(args).copied().collect();
    let output = place.run(&all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn close(found: &Value, expected: f64, tolerance: f64) {
    let value = found.as_f64().unwrap_or_else(|| panic!("{found} is not a number, expected {expected}"));
    assert!((value - expected).abs() <= tolerance * expected.abs().max(1.0), "{value} for {expected}");
}

fn effect<'a>(answer: &'a Value, term: &str) -> &'a Value {
    let all = answer["experiment"]["effects"].as_array().unwrap();
    all.iter().find(|e| e["term"] == term).unwrap_or_else(|| panic!("no effect {term}"))
}

fn line<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["experiment"]["anova"]["lines"].as_array().unwrap();
    all.iter().find(|l| l["name"] == name).unwrap_or_else(|| panic!("no line {name}"))
}

#[test]
fn jains_replicated_example() {
    let vector = vector("jain-2kr-memcache-2x2x3");
    let expected = &vector["expect"];
    let place = Place::new();
    place.write("jain.csv", &two_level(&["memory", "cache"], &vector["input"]["y"]));
    let found = answer(
        &place,
        &[
            "jain.csv",
            "--no-log",
            "--confidence",
            "0.9",
            "--predict",
            "memory=-1,cache=-1",
            "--future-runs",
            "5",
        ],
    );
    for term in ["A", "B", "AB"] {
        let own = effect(&found, term);
        let q = expected["q"][term].as_f64().unwrap();
        close(&own["half_effect"], q, 1e-9);
        close(&own["effect"], 2.0 * q, 1e-9);
        for end in 0..2 {
            close(&own["interval"][end], expected["ci90"][term][end].as_f64().unwrap(), 1e-8);
        }
        close(&own["variation_percent"], expected["percent_of_variation"][term].as_f64().unwrap(), 1e-6);
        let t = own["t"].as_f64().unwrap();
        close(&line(&found, own["name"].as_str().unwrap())["f"], t * t, 1e-9);
    }
    let error = &found["experiment"]["error"];
    for (name, key) in [("sse", "SSE"), ("sst", "SST"), ("ssy", "SSY"), ("s_e", "s_e"), ("s_q", "s_q")] {
        close(&error[name], expected[key].as_f64().unwrap(), 1e-9);
    }
    assert_eq!((&error["kind"], &error["df"]), (&"replicates".into(), &8.into()));
    let prediction = &found["experiment"]["predictions"][0];
    assert_eq!(prediction["asked"], true);
    let jain = &expected["predicted_response_at_minus_minus_ci90_for_m_future_runs"]["5"];
    for end in 0..2 {
        close(&prediction["jain_interval"][end], jain[end].as_f64().unwrap(), 1e-8);
    }
    // Least squares is less cautious: 4/12 in place of 5/12.
    let width = |i: &Value| i[1].as_f64().unwrap() - i[0].as_f64().unwrap();
    let ratio = width(&prediction["future_interval"]) / width(&prediction["jain_interval"]);
    assert!((ratio - ((4.0 / 12.0 + 0.2) / (5.0 / 12.0 + 0.2f64)).sqrt()).abs() < 1e-9);
}

#[test]
fn an_unreplicated_design_has_lenths_margins_or_pools() {
    let vector = vector("nist-ceramics-2^5");
    let place = Place::new();
    let names = ["speed", "feed", "grit", "direction", "batch"];
    place.write("ceramics.csv", &two_level(&names, &vector["input"]["y"]));
    let found = answer(&place, &["ceramics.csv", "--no-log"]);
    assert_eq!(found["experiment"]["error"]["kind"], "lenth");
    assert_eq!(found["experiment"]["effects_total"], 31);
    let lenth = &found["experiment"]["lenth"];
    let numbers = ["pse", "me", "sme", "pse_half"].map(|key| lenth[key].as_f64().unwrap());
    assert!(
        numbers[0] < numbers[1] && numbers[1] < numbers[2] && (numbers[0] - 2.0 * numbers[3]).abs() < 1e-9
    );
    assert_eq!(effect(&found, "D")["significant"], true);

    let pooled = answer(&place, &["ceramics.csv", "--no-log", "--pool", "4"]);
    let expected = &vector["expect"]["model_to_3fi"];
    let error = &pooled["experiment"]["error"];
    assert_eq!((&error["kind"], &error["df"]), (&"pooled".into(), &6.into()));
    close(&error["sse"], expected["SSE"].as_f64().unwrap(), 1e-6);
    close(&error["s_e"], expected["RMSE"].as_f64().unwrap(), 1e-6);
    close(&error["r_squared"], expected["R2"].as_f64().unwrap(), 1e-6);
    for (term, name) in
        [("4", "direction"), ("5", "batch"), ("3", "grit"), ("124", "speed × feed × direction")]
    {
        close(&line(&pooled, name)["f"], expected["F"][term].as_f64().unwrap(), 1e-4);
    }
}

#[test]
fn mixed_levels_have_an_analysis_of_variance() {
    let vector = vector("r-warpbreaks-2x3x9");
    let mut values = vector["input"]["breaks"].as_array().unwrap().iter();
    let mut csv = "wool,tension,breaks\n".to_owned();
    for wool in ["A", "B"] {
        for tension in ["L", "M", "H"] {
            for _ in 0..9 {
                csv += &format!("{wool},{tension},{}\n", values.next().unwrap());
            }
        }
    }
    let place = Place::new();
    place.write("warp.csv", &csv);
    for (scale, key) in [("--no-log", "raw"), ("--log", "log")] {
        let found = answer(&place, &["warp.csv", scale, "--levels", "tension=L,M,H"]);
        let expected = &vector["expect"][key];
        let names =
            [("wool", "wool"), ("tension", "tension"), ("interaction", "wool × tension"), ("error", "error")];
        for (i, (name, term)) in names.iter().enumerate() {
            close(&line(&found, term)["sum_of_squares"], expected["SS"][name].as_f64().unwrap(), 5e-5);
            if i < 3 {
                close(&line(&found, term)["f"], expected["F"][i].as_f64().unwrap(), 5e-5);
                close(&line(&found, term)["p"], expected["p"][i].as_f64().unwrap(), 5e-5);
            }
        }
        assert_eq!(found["experiment"]["factors"][1]["levels"], serde_json::json!(["L", "M", "H"]));
        let box_cox = found["experiment"]["scale"]["box_cox"].as_array().unwrap();
        assert_eq!(box_cox.len(), 5);
    }
}

#[test]
fn two_groups_are_compared_with_and_without_ranks() {
    let vector = vector("welch-sleep");
    let mut csv = "group,extra\n".to_owned();
    for (group, key) in [("1", "a"), ("2", "b")] {
        for value in vector["input"][key].as_array().unwrap() {
            csv += &format!("{group},{value}\n");
        }
    }
    let place = Place::new();
    place.write("sleep.csv", &csv);
    let found = answer(&place, &["sleep.csv"]);
    let groups = &found["experiment"]["groups"];
    for key in ["t", "df", "p"] {
        close(&groups["welch"][key], vector["expect"][key].as_f64().unwrap(), 1e-4);
    }
    for end in 0..2 {
        close(&groups["welch"]["interval"][end], vector["expect"]["ci95"][end].as_f64().unwrap(), 1e-6);
        let own = vector["expect"]["one_sample_a_ci95"][end].as_f64().unwrap();
        close(&groups["first"]["interval"][end], own, 1e-6);
    }
    assert!(groups["mann_whitney"]["shift"].is_number());
    // Fieller's formula by hand: t with Welch and Satterthwaite's degrees of freedom, and with 9 for each mean.
    for (key, low, high) in [
        ("ratio", -0.227_858_121_504_8, 1.226_650_623_397_2),
        ("ratio_kalibera_jones", -0.248_165_784_580_5, 1.283_000_062_547_2),
    ] {
        close(&groups[key]["value"], 0.75 / 2.33, 1e-9);
        close(&groups[key]["interval"][0], low, 1e-8);
        close(&groups[key]["interval"][1], high, 1e-8);
    }
    let text = stdout(&place.run(&["analyze", "--data", "sleep.csv"]));
    assert!(text.contains("not distinguishable from noise"), "{text}");
    assert!(text.contains("Welch") && text.contains("Mann-Whitney"), "{text}");
}

#[test]
fn a_single_column_is_a_sample() {
    let vector = vector("bca-aircondit");
    let column = |values: &Value| {
        let lines: Vec<_> = values.as_array().unwrap().iter().map(Value::to_string).collect();
        format!("y\n{}\n", lines.join("\n"))
    };
    let place = Place::new();
    place.write("air.csv", &column(&vector["input"]["x"]));
    let found = answer(&place, &["air.csv"]);
    assert!(found["experiment"].is_null());
    let sample = &found["sample"];
    close(&sample["mean"], vector["expect"]["mean"].as_f64().unwrap(), 1e-8);
    close(&sample["bootstrap"]["acceleration"], vector["expect"]["acceleration"].as_f64().unwrap(), 1e-6);
    for (key, name) in
        [("bca", "bca95"), ("percentile", "perc95"), ("basic", "basic95"), ("normal", "normal95")]
    {
        for end in 0..2 {
            let expected = vector["expect"][name][end].as_f64().unwrap();
            close(&sample["bootstrap"][key][end], expected, 0.05);
        }
    }
    let nile = self::vector("edivisive-nile");
    place.write("nile.csv", &column(&nile["input"]["y"]));
    let found = answer(&place, &["nile.csv", "--changes"]);
    let points = found["sample"]["changes"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 1);
    assert_eq!(points[0]["index"], nile["expect"]["first_index_of_second_segment_zero_based"]);
    close(&points[0]["q"], nile["expect"]["qhat_full_series"].as_f64().unwrap(), 1e-6);
}

#[test]
fn a_fraction_is_told_what_it_cannot_separate() {
    // D = AB, E = AC, F = BC: the estimate of B is that of B, AD, CF, and so on.
    let mut csv = "a,b,c,d,e,f,y\n".to_owned();
    for run in 0..24 {
        let x = [0, 1, 2].map(|j| if run >> j & 1 == 1 { 1 } else { -1 });
        let y = 50.0 + f64::from(5 * x[1] + 3 * x[2]) + f64::from(run * 7 % 5) / 10.0;
        csv += &format!("{},{},{},{},{},{},{y}\n", x[0], x[1], x[2], x[0] * x[1], x[0] * x[2], x[1] * x[2]);
    }
    let place = Place::new();
    place.write("fraction.csv", &csv);
    let found = answer(&place, &["fraction.csv"]);
    let experiment = &found["experiment"];
    assert_eq!(experiment["design"]["kind"], "regular fraction");
    assert_eq!(experiment["design"]["resolution"], 3);
    assert_eq!(experiment["design"]["generators"], serde_json::json!(["D=AB", "E=AC", "F=BC"]));
    assert_eq!(effect(&found, "B")["aliased_with"], serde_json::json!(["AD", "CF", "AEF", "CDE"]));
    let chains = experiment["aliases"].as_array().unwrap();
    let mean = chains.iter().find(|c| c["terms"][0] == "I").unwrap();
    assert_eq!(mean["terms"], serde_json::json!(["I", "ABD", "ACE", "BCF", "DEF"]));
    let sentences = experiment["sentences"].to_string();
    assert!(
        sentences.contains("cannot separate") && sentences.contains("cannot be separated from the mean"),
        "{sentences}"
    );
}

#[test]
fn blocks_confounded_with_a_term_are_said() {
    // R's npk: three blocks of four in each half, confounded with NPK.
    let rows = "1 0 1 1 49.5|1 1 1 0 62.8|1 0 0 0 46.8|1 1 0 1 57.0|2 1 0 0 59.8|2 1 1 1 58.5|2 0 0 1 55.5|2 0 1 0 56.0|\
                3 0 1 0 62.8|3 1 1 1 55.8|3 1 0 0 69.5|3 0 0 1 55.0|4 1 0 0 62.0|4 1 1 1 48.8|4 0 0 1 45.5|4 0 1 0 44.2|\
                5 1 1 0 52.0|5 0 0 0 51.5|5 1 0 1 49.8|5 0 1 1 48.8|6 1 0 1 57.2|6 1 1 0 59.0|6 0 1 1 53.2|6 0 0 0 56.0";
    let csv = format!("block,N,P,K,yield\n{}\n", rows.replace(' ', ",").replace('|', "\n"));
    let place = Place::new();
    place.write("npk.csv", &csv);
    let found = answer(
        &place,
        &["npk.csv", "--response", "yield", "--block", "block", "--factors", "N,P,K", "--no-log"],
    );
    // R's anova(lm(yield ~ block + N*P*K, npk)).
    for (name, f, p) in [("N", 12.2587, 0.004372), ("K", 6.1657, 0.028795), ("N × P", 1.3783, 0.263165)] {
        close(&line(&found, name)["f"], f, 1e-4);
        close(&line(&found, name)["p"], p, 1e-4);
    }
    assert_eq!(line(&found, "error")["df"], 12);
    assert_eq!(line(&found, "block")["df"], 5);
    let lost = &found["experiment"]["not_separable"][0];
    assert_eq!((&lost["term"], &lost["with"][0]), (&"ABC".into(), &"blocks".into()));
}

#[test]
fn missing_values_are_left_out_and_said() {
    let place = Place::new();
    place.write("runs.csv", "a,b,y\n0,0,1\n1,0,2\n0,1,NA\n1,1,4\n0,0,1.5\n1,0,\n0,1,3.2\n1,1,4.4\n");
    let found = answer(&place, &["runs.csv"]);
    assert_eq!(found["rows"], 8);
    let experiment = &found["experiment"];
    assert_eq!(experiment["runs"], 6);
    assert_eq!(experiment["left_out"], serde_json::json!([{ "reason": "no value", "runs": 2 }]));
    assert_eq!(experiment["replicates"], serde_json::json!([1, 2]));
}

#[test]
fn centre_points_are_the_error_of_an_unreplicated_fraction() {
    let place = Place::new();
    let mut text = String::from("A,B,C,D,y\n");
    for (i, y) in [61, 74, 50, 79, 57, 76, 48, 85].into_iter().enumerate() {
        let level = |j: usize| if i >> j & 1 == 1 { 3 } else { 1 };
        let product = if i.count_ones() % 2 == 1 { 3 } else { 1 };
        text += &format!("{},{},{},{product},{y}\n", level(0), level(1), level(2));
    }
    text += "2,2,2,2,70.4\n2,2,2,2,69.1\n2,2,2,2,71.5\n";
    place.write("fraction.csv", &text);
    let found = answer(&place, &["fraction.csv", "--no-log"]);
    let experiment = &found["experiment"];
    assert_eq!(experiment["design"]["generators"], serde_json::json!(["D=ABC"]));
    assert_eq!((&experiment["error"]["kind"], &experiment["error"]["df"]), (&"replicates".into(), &2.into()));
    assert!(experiment["lenth"].is_null());
    // R: summary(lm(y ~ m + A + B + C + D + A:B + A:C + B:C)) in codes, m = 1 in the middle.
    for (term, half, p) in [
        ("A", 12.25, 1.200_112_960_25e-3),
        ("B", -0.75, 0.219_483_647_722),
        ("AB", 4.25, 9.841_260_375_68e-3),
        ("AC", 1.75, 5.416_919_567_04e-2),
    ] {
        let own = effect(&found, term);
        close(&own["half_effect"], half, 1e-9);
        close(&own["standard_error"], 0.424_754_831_246, 1e-9);
        close(&own["p"], p, 1e-9);
    }
    let curvature = &experiment["curvature"];
    close(&curvature["estimate"], -4.083_333_333_33, 1e-9);
    close(&curvature["p"], 3.745_997_518_21e-2, 1e-9);
    close(&line(&found, "curvature")["f"], 25.204_70, 1e-5);
    close(&experiment["error"]["sst"], 1_418.765_454_545_5, 1e-9);
    assert_eq!(line(&found, "total")["df"], 10);
    let text = stdout(&place.run(&["analyze", "--data", "fraction.csv", "--no-log"]));
    assert!(text.contains("curvature") && text.contains("The response bends"), "{text}");
}

#[test]
fn wrong_input_is_refused_with_its_place() {
    let place = Place::new();
    place.write("runs.csv", "a,y\n0,1\n1,many\n");
    place.write("short.csv", "a,y\n0,1\n1\n");
    place.write("good.csv", "a,y\n0,1\n1,2\n0,3\n1,4\n");
    let refused = |args: &[&str]| {
        let all: Vec<&str> = ["analyze", "--data"].iter().chain(args).copied().collect();
        let output = place.run(&all);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        stderr(&output)
    };
    assert!(
        refused(&["runs.csv", "--response", "y"])
            .contains("`runs.csv`, line 3: `many` in `y` is not a number")
    );
    assert!(refused(&["short.csv"]).contains("line 3 has 1 cell, the first line has 2"));
    let hosts: Vec<_> = (0..1500).map(|i| format!("h{i},{}", i % 13)).collect();
    place.write("hosts.csv", &format!("host,y\n{}\n", hosts.join("\n")));
    let many = refused(&["hosts.csv"]);
    assert!(many.contains("1500 parameters") && many.contains("host alone has 1500 levels"), "{many}");
    assert!(refused(&["nowhere.csv"]).contains("cannot read `nowhere.csv`"));
    assert!(refused(&["good.csv", "--factors", "b"]).contains("has no column `b`; it has `a`, `y`"));
    assert!(refused(&["good.csv", "--terms", "z"]).contains('z'));
    assert!(refused(&["good.csv", "--predict", "a=7"]).contains("a has no level `7`; its levels are 0, 1"));
    assert!(refused(&["good.csv", "--predict", "a"]).contains("--predict"));
    assert!(refused(&["good.csv", "--levels", "a=0"]).contains("`1` is not named"));
    assert!(refused(&["good.csv", "--confidence", "95"]).contains("between 0 and 1"));
}

#[test]
fn the_order_of_rows_and_columns_does_not_matter() {
    let place = Place::new();
    let rows =
        ["0,lo,1.0", "1,lo,2.5", "0,hi,3.0", "1,hi,7.5", "0,lo,1.2", "1,lo,2.1", "0,hi,3.3", "1,hi,7.0"];
    let write = |name: &str, rows: &[&str]| place.write(name, &format!("a,b,y\n{}\n", rows.join("\n")));
    let mut turned = rows;
    turned.reverse();
    write("there.csv", &rows);
    write("back.csv", &turned);
    let (there, back) = (answer(&place, &["there.csv"]), answer(&place, &["back.csv"]));
    for term in ["A", "B", "AB"] {
        close(
            &effect(&there, term)["half_effect"],
            effect(&back, term)["half_effect"].as_f64().unwrap(),
            1e-9,
        );
    }
}

/// Every field of an answer is in docs/analysis-json.md.
#[test]
fn every_field_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analysis-json.md");
    let text = fs::read_to_string(path).unwrap();
    let section = text.split("## Analyses: benchmaster analyze").nth(1).unwrap();
    let documented: Vec<&str> =
        section.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    let place = Place::new();
    let fraction = "a,b,c,y\n-1,-1,1,1\n1,-1,-1,2\n-1,1,-1,3\n1,1,1,5.5\n-1,-1,1,1.2\n1,-1,-1,2.3\n-1,1,-1,3.1\n1,1,1,\n";
    place.write("fraction.csv", fraction);
    place.write("group.csv", "g,y\na,1\na,2\na,4\nb,3\nb,5\nb,9\n");
    let cube = vector("bhh-pilot-plant-2x2x2x2");
    place.write("cube.csv", &two_level(&["T", "C", "K"], &cube["input"]["y"]));
    let ceramics = vector("nist-ceramics-2^5");
    place.write("single.csv", &two_level(&["s", "f", "g", "d", "b"], &ceramics["input"]["y"]));
    place.write("one.csv", "y\n1\n2\n4\n3\n5\n9\n2\n3\n4\n5\n6\n1\n");
    let answers = [
        answer(&place, &["fraction.csv", "--predict", "a=1,b=1,c=1", "--future-runs", "2"]),
        answer(&place, &["group.csv"]),
        answer(&place, &["cube.csv", "--order", "2"]),
        answer(&place, &["single.csv", "--log"]),
        answer(&place, &["one.csv", "--changes"]),
    ];
    let mut missing = Vec::new();
    for answer in &answers {
        for (key, value) in answer.as_object().unwrap() {
            match key.as_str() {
                "experiment" | "sample" => walk(value, "", &mut |field| {
                    // What has the fields of something else is said to have them.
                    let field = field
                        .replace("reduced.coefficients[].", "effects[].")
                        .replace("reduced.lack_of_fit.", "lack_of_fit.");
                    let field =
                        field.strip_prefix("mean.").map_or(field.clone(), |rest| format!("effects[].{rest}"));
                    if !documented.contains(&field.as_str()) && !missing.contains(&field) {
                        missing.push(field);
                    }
                }),
                _ => assert!(documented.contains(&key.as_str()), "{key}"),
            }
        }
    }
    assert!(missing.is_empty(), "docs/analysis-json.md does not have {missing:?}");
}

fn walk(value: &Value, path: &str, found: &mut impl FnMut(String)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found(path.clone());
                walk(value, &path, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| {
            if value.is_object() || value.is_array() {
                walk(value, &format!("{path}[]"), found);
            }
        }),
        _ => {}
    }
}

#[test]
fn rows_between_the_levels_are_centre_points() {
    let place = Place::new();
    // y = 50 + 10 A + 8 B at the corners with errors of ±1 that cancel, and 7 more in the middle. C cannot be halved.
    let mut text = String::from("A,B,C,y\n");
    for (i, (a, b)) in [(10, 1), (30, 1), (10, 5), (30, 5)].into_iter().enumerate() {
        for (j, c) in ["off", "on"].into_iter().enumerate() {
            let error = if (i + j) % 2 == 0 { 1 } else { -1 };
            let y = 50 + 10 * ((a - 20) / 10) + 8 * ((b - 3) / 2) + error;
            text += &format!("{a},{b},{c},{y}\n");
        }
    }
    text += "20,3,off,57.2\n20,3,on,56.8\n20,3,off,57.1\n20,3,on,56.9\n";
    place.write("centre.csv", &text);
    let output = place.run(&["analyze", "--data", "centre.csv", "--no-log", "--order", "1", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let experiment = &found["experiment"];
    assert_eq!(experiment["design"]["centre_points"], 4);
    assert_eq!(experiment["treatments"], 8, "{:#}", experiment["design"]);
    // The middle tells of C as well: −0.15 there and 0 at the corners, of which there are twice as many.
    for (term, half_effect) in [("A", 10.0), ("B", 8.0), ("C", -0.05)] {
        let effect = experiment["effects"].as_array().unwrap().iter().find(|e| e["term"] == term).unwrap();
        assert!((effect["half_effect"].as_f64().unwrap() - half_effect).abs() < 1e-9, "{effect:#}");
    }
    // R: lm(y ~ m + A + B + C), m = 1 in the middle.
    assert_eq!(experiment["error"]["df"], 7);
    close(&experiment["curvature"]["estimate"], -7.0, 1e-9);
    close(&experiment["curvature"]["p"], 1.413_813_507_94e-5, 1e-9);
    assert_eq!(line(&found, "curvature")["df"], 1);
    assert!(found["notes"][1].as_str().unwrap().starts_with("4 runs lie halfway"), "{:#}", found["notes"]);
}
