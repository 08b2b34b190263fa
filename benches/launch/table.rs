//! Prints one table in Markdown.

use crate::{
    statistics::{median, ratio},
    timing::Times,
};

/// Prints what everyone took; the first is who they are compared with.
pub(crate) fn print(title: &str, times: &[Times]) {
    println!("\n**{title}**\n");
    println!("| | ns a launch | ratio to the first | 95 % interval |");
    println!("| --- | ---: | ---: | --- |");
    for Times { way, rounds } in times {
        let r = ratio(rounds, &times[0].rounds);
        println!(
            "| {} | {:.0} | {:.3} | {:.3} to {:.3} |",
            way.name(),
            median(&mut rounds.clone()),
            r.value,
            r.low,
            r.high
        );
    }
}
