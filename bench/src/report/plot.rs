//! Bars, as SVG that needs no script and no font of its own.

use std::fmt::Write as _;

use crate::contestant::Contestant;
use crate::figures::{ContestFigures, Figures, Part, contests};
use crate::summary::Summary;

const WIDTH: f64 = 830.0;
const BAR: f64 = 22.0;
const GAP: f64 = 8.0;
const LABEL: f64 = 300.0;
const TOP: f64 = 34.0;

/// One plot for each workload and number of clients, with the bars of each group: file name, title, SVG.
pub(crate) fn all(figures: &Figures) -> Vec<(String, String, String)> {
    figures.tables().filter_map(plot).collect()
}

fn plot(parts: &[Part]) -> Option<(String, String, String)> {
    let contests: Vec<_> = contests(parts).collect();
    let ContestFigures { workload, clients, .. } = contests.first()?;
    let (workload, s) = (workload.name(), if *clients == 1 { "" } else { "s" });
    let title = format!("{workload}, {clients} client{s}: operations a second");
    let groups: Vec<Vec<Bar>> = contests.into_iter().map(bars).collect();
    Some((format!("{workload}-{clients}.svg"), title.clone(), bars_svg(&title, &groups)))
}

fn bars(contest: &ContestFigures) -> Vec<Bar> {
    let bar = |(who, summary): &(Contestant, Summary)| Bar {
        label: who.name(),
        value: summary.median(),
        spread: summary.spread(),
        ours: who.is_ours(),
    };
    contest.results.iter().map(bar).collect()
}

struct Bar {
    label: &'static str,
    value: f64,
    spread: (f64, f64),
    ours: bool,
}

fn bars_svg(title: &str, groups: &[Vec<Bar>]) -> String {
    // Those of a group stand together.
    let numbered = groups.iter().enumerate();
    let bars: Vec<_> = numbered.flat_map(|(group, bars)| bars.iter().map(move |bar| (group, bar))).collect();
    let height = TOP + bars.len() as f64 * (BAR + GAP) + groups.len() as f64 * GAP;
    let most = bars.iter().map(|(_, bar)| bar.spread.1.max(bar.value)).fold(1.0, f64::max);
    let scale = (WIDTH - LABEL - 90.0) / most;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"10\" y=\"21\" font-weight=\"bold\">{title}</text>\n"
    );
    for (place, (group, bar)) in bars.iter().enumerate() {
        let y = TOP + place as f64 * (BAR + GAP) + *group as f64 * GAP;
        let (middle, colour) = (y + BAR / 2.0, if bar.ours { "#2b6cb0" } else { "#a0aec0" });
        let (from, to) = (LABEL + bar.spread.0 * scale, LABEL + bar.spread.1 * scale);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABEL}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
             <line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#1a202c\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{:.0}</text>",
            LABEL - 8.0,
            middle + 5.0,
            bar.label,
            bar.value * scale,
            to.max(LABEL + bar.value * scale) + 6.0,
            middle + 5.0,
            bar.value,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_bar_for_each() {
        let bar = |label, value| Bar { label, value, spread: (value / 2.0, value * 1.1), ours: true };
        let svg = bars_svg("title", &[vec![bar("one", 10.0)], vec![bar("two", 0.0)]]);
        assert_eq!(svg.matches("<rect x=").count(), 2);
        assert!(svg.contains(">one<") && svg.ends_with("</svg>\n"));
    }
}
