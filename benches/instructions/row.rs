//! A line of the file that goes from the measuring process to the reporting one.

use std::fmt;

/// One way to launch.
pub(crate) struct Row {
    /// What is launched. Rows of a group follow one another; the first is the bare call.
    pub(crate) group: String,
    pub(crate) way: String,
    /// The instructions it may take above the bare call.
    pub(crate) budget: Option<usize>,
    /// Heap allocations a launch.
    pub(crate) allocations: String,
    /// Driver calls a launch.
    pub(crate) calls: String,
}

impl Row {
    /// The file's name.
    pub(crate) const FILE: &'static str = "rows";

    pub(crate) fn new(group: &str, way: &str, budget: Option<usize>) -> Row {
        Row {
            group: group.to_owned(),
            way: way.to_owned(),
            budget,
            allocations: String::new(),
            calls: String::new(),
        }
    }

    /// Reads the line that `Display` wrote.
    pub(crate) fn parse(line: &str) -> Option<Row> {
        let mut fields = line.split('\t').map(str::to_owned);
        Some(Row {
            group: fields.next()?,
            way: fields.next()?,
            budget: fields.next()?.parse().ok(),
            allocations: fields.next()?,
            calls: fields.next()?,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = self.budget.map_or_else(String::new, |n| n.to_string());
        write!(
            f,
            "{}\t{}\t{budget}\t{}\t{}",
            self.group,
            self.way,
            self.allocations,
            self.calls.trim_end()
        )
    }
}
