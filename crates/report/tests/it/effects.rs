//! The plots of effects as data: what is drawn, and what is said of it.

use std::fmt::Write;

use benchmaster_analysis::experiment::Experiment;
use benchmaster_report::pages;
use serde_json::Value;

use crate::made_up::{self, MadeUp, SIX, all};

fn page(experiment: &Experiment) -> String {
    pages::experiment("made up".into(), &[], experiment).page().unwrap()
}

/// The figures of the page of an experiment.
fn figures(experiment: &Experiment) -> Vec<Value> {
    let page = page(experiment);
    let start = r#"<script type="application/x-ndjson" id="figures">"#;
    let data = &page[page.find(start).unwrap() + start.len()..];
    let lines = data[..data.find("</script>").unwrap()].lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn figure<'f>(figures: &'f [Value], id: &str) -> &'f Value {
    figures.iter().find(|f| f["id"] == id).unwrap_or_else(|| panic!("there is no {id}"))
}

/// A value, shortened: the first of many.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(values) if values.len() > 8 => {
            let first: Vec<_> = values[..8].iter().map(Value::to_string).collect();
            format!("[{}, … {} in all]", first.join(", "), values.len())
        }
        value => value.to_string(),
    }
}

/// Everything that a figure has but what is empty.
fn told(figures: &[Value]) -> String {
    let mut text = String::new();
    for figure in figures {
        writeln!(text, "\n# {}\n{}", figure["title"].as_str().unwrap(), figure["note"].as_str().unwrap())
            .unwrap();
        for view in figure["views"].as_array().unwrap() {
            writeln!(text, "view: {}", view["label"].as_str().unwrap()).unwrap();
            for axis in ["x", "y"] {
                let own = if view[axis].is_null() { &figure[axis] } else { &view[axis] };
                writeln!(text, "  {axis}: {own}").unwrap();
            }
            for key in ["marks", "marks_y", "words"] {
                if !view[key].is_null() {
                    writeln!(text, "  {key}: {}", view[key]).unwrap();
                }
            }
            for line in view["lines"].as_array().unwrap() {
                writeln!(text, "  {} {}", line["mode"].as_str().unwrap(), line["name"]).unwrap();
                for key in ["x", "y", "error_x", "error_y", "labels", "text"] {
                    if !line[key].is_null() {
                        writeln!(text, "    {key}: {}", brief(&line[key])).unwrap();
                    }
                }
            }
        }
    }
    text
}

#[test]
fn a_mixed_design() {
    insta::assert_snapshot!(told(&figures(&made_up::mixed())));
}

#[test]
fn three_factors_on_the_log_scale() {
    let effects: &[(&[usize], f64)] = &[(&[0], 1.2), (&[2], -0.5), (&[0, 2], 0.2)];
    let made_up = MadeUp { levels: &[2; 3], replicates: 3, effects, noise: 0.1, multiply: true, keep: all };
    insta::assert_snapshot!(told(&figures(&made_up.analysed())));
}

#[test]
fn an_unreplicated_design_has_lenths_margins() {
    let experiment = made_up::unreplicated();
    let figures = figures(&experiment);
    let lenth = experiment.lenth.unwrap();
    let pareto = &figure(&figures, "effects-sizes")["views"][0];
    let marks = pareto["marks"].as_array().unwrap();
    assert_eq!((marks[0][1].as_str(), marks[1][1].as_str()), (Some("ME"), Some("SME")));
    for (mark, margin) in marks.iter().zip([lenth.me.min(lenth.simultaneous), lenth.simultaneous]) {
        assert!((mark[0].as_f64().unwrap() / margin - 1.0).abs() < 1e-9);
    }
    let labels = figure(&figures, "effects-half-normal")["views"][0]["lines"][0]["labels"].to_string();
    assert!(["\"E\"", "\"B\"", "\"C\""].iter().all(|label| labels.contains(label)), "{labels}");
    let shown = ["effects-sizes", "effects-half-normal"].map(|id| figure(&figures, id).clone());
    insta::assert_snapshot!(told(&shown));
}

/// The bars of a view: place and value.
fn bars(view: &Value) -> Vec<(usize, f64, f64)> {
    let mut bars = Vec::new();
    for line in view["lines"].as_array().unwrap() {
        let [x, y, error] = ["x", "y", "error_y"].map(|key| line[key].as_array().unwrap());
        for ((x, y), error) in x.iter().zip(y).zip(error) {
            bars.push((x.as_f64().unwrap() as usize, y.as_f64().unwrap(), error[0].as_f64().unwrap()));
        }
    }
    bars.sort_by_key(|(place, ..)| *place);
    bars
}

/// Figure 5 of paper 004: all effects of six factors in standard order, with intervals.
#[test]
fn effects_in_standard_order_are_all_there_with_their_intervals() {
    let experiment = made_up::six(false);
    let figures = figures(&experiment);
    let sizes = figure(&figures, "effects-sizes");
    let view = &sizes["views"][2];
    assert_eq!(view["label"], "standard order, half effect q");
    let ticks = view["x"]["ticks"].as_array().unwrap();
    let names: Vec<&str> = ticks.iter().map(|t| t[1].as_str().unwrap()).collect();
    assert_eq!(names.len(), 63);
    assert_eq!(names[..7], ["A", "B", "AB", "C", "AC", "BC", "ABC"]);
    assert_eq!(names[62], "ABCDEF");
    let bars = bars(view);
    for effect in &experiment.effects {
        let place = names.iter().position(|name| *name == effect.term).unwrap();
        let (_, value, half) = bars[place];
        assert!((value - effect.coefficient).abs() <= 1e-4 * effect.coefficient.abs());
        assert!((half / effect.half_width.unwrap() - 1.0).abs() < 1e-4);
    }
    // Of 63 effects the largest 40 are in the Pareto plot, and the others are counted.
    let pareto = &sizes["views"][0];
    assert_eq!(pareto["y"]["ticks"].as_array().unwrap().len(), 40);
    assert!(sizes["note"].as_str().unwrap().contains("23 effects more, all smaller, are not drawn"));
    let first: Vec<_> =
        pareto["y"]["ticks"].as_array().unwrap()[..4].iter().map(|t| t[1].as_str().unwrap()).collect();
    assert_eq!(first, ["E file_size", "B storage", "C sync", "F delay"]);
}

/// Figure 6 of paper 004: the fraction D=AB, E=AC, F=BC. Each estimate is named with what it cannot be separated from.
#[test]
fn effects_of_a_fraction_have_the_names_of_their_aliases() {
    let figures = figures(&made_up::fraction());
    let sizes = figure(&figures, "effects-sizes");
    let ticks = sizes["views"][1]["x"]["ticks"].as_array().unwrap();
    let names: Vec<&str> = ticks.iter().map(|t| t[1].as_str().unwrap()).collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(names.contains(&"B+AD+CF") || names.iter().any(|n| n.starts_with("B+AD")), "{names:?}");
    assert!(sizes["note"].as_str().unwrap().contains("The design is a fraction"));
}

/// Every plot says n and the confidence level (or that there are no intervals), and those of effects which effect.
#[test]
fn every_plot_says_what_it_shows() {
    for experiment in [made_up::six(true), made_up::fraction(), made_up::unreplicated(), made_up::mixed()] {
        for figure in figures(&experiment) {
            let note = figure["note"].as_str().unwrap();
            assert!(note.contains("n = "), "{note}");
            let level = note.contains("95\u{a0}%") || note.contains("no interval");
            assert!(level, "{}: {note}", figure["title"]);
            let of_effects = ["effects-sizes", "effects-half-normal", "effects-main", "effects-interactions"];
            if of_effects.iter().any(|id| figure["id"] == *id) {
                let lower = note.to_lowercase();
                assert!(lower.contains("full effect") || lower.contains("half effect"), "{note}");
            }
        }
    }
}

#[test]
fn hundreds_of_effects_stay_small() {
    let made_up =
        MadeUp { levels: &[2; 8], replicates: 2, effects: SIX, noise: 0.05, multiply: true, keep: all };
    let experiment = made_up.analysed();
    let with = page(&experiment).len();
    let without = page(&made_up::mixed()).len();
    assert!(with - without < 250_000, "{} bytes", with - without);
    let figures = figures(&experiment);
    let note = figure(&figures, "effects-half-normal")["note"].as_str().unwrap().to_owned();
    assert!(note.contains("Of 255 effects, the largest 40"), "{note}");
}

/// A model that misses something may need another scale, unless it is on it.
#[test]
fn the_log_scale_is_advised_only_where_it_is_not_used() {
    for multiply in [false, true] {
        let effects: &[(&[usize], f64)] = &[(&[0], 0.3), (&[1], 0.2), (&[0, 1], 0.2)];
        let made_up = MadeUp { levels: &[2; 2], replicates: 5, effects, noise: 0.01, multiply, keep: all };
        let page = page(&made_up.with_terms_up_to(Some(1)));
        assert!(page.contains("The model misses something"));
        assert_eq!(page.contains("look at the log scale"), !multiply);
    }
}
