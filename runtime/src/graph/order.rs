//! Which node of a graph runs after which. Knows no driver.
//!
//! Two nodes conflict if they use overlapping memory and one of them writes to it. A node comes
//! after all nodes before it, in the order they were added, that it conflicts with; others may run
//! beside it.

/// What a node does with the memory from one address up to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) writes: bool,
}

/// The nodes, in the order they were added.
#[derive(Debug, Default)]
pub(super) struct Order {
    nodes: Vec<Node>,
    /// Room for one mark a node, so that looking for one allocates nothing.
    marks: Vec<bool>,
}

#[derive(Debug)]
struct Node {
    /// Those it directly comes after, which were added earlier.
    after: Vec<usize>,
    uses: Uses,
    /// Whether none of its accesses conflicts with another of them.
    apart: bool,
}

/// What memory a node uses.
#[derive(Debug)]
pub(super) struct Uses {
    pub(super) accesses: Vec<Access>,
    /// Whether it may use any other too, and conflicts with every node.
    pub(super) all: bool,
}

impl Uses {
    fn conflict(&self, other: &Uses) -> bool {
        self.all || other.all || conflict(&self.accesses, &other.accesses)
    }
}

impl Order {
    /// The fewest nodes that a new one must directly come after.
    pub(super) fn before(&mut self, uses: &Uses) -> Vec<usize> {
        let mut direct = Vec::new();
        self.marks.fill(false);
        // A mark says that what is found to come after others brings this one with it.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if !self.marks[index] {
                if !uses.conflict(&node.uses) {
                    continue;
                }
                direct.push(index);
            }
            for &earlier in &node.after {
                self.marks[earlier] = true;
            }
        }
        direct
    }

    /// Adds a node that directly comes after these.
    pub(super) fn add(&mut self, after: Vec<usize>, uses: Uses) -> usize {
        let apart = are_apart(&uses.accesses);
        self.nodes.push(Node { after, uses, apart });
        self.marks.push(false);
        self.nodes.len() - 1
    }

    /// Lets a node come after one that was added earlier. Whether it did not already, directly.
    pub(super) fn put_after(&mut self, node: usize, earlier: usize) -> bool {
        let after = &mut self.nodes[node].after;
        let new = !after.contains(&earlier);
        if new {
            after.push(earlier);
        }
        new
    }

    /// What a node does with memory that is known.
    pub(super) fn accesses(&self, node: usize) -> &[Access] {
        &self.nodes[node].uses.accesses
    }

    /// The same, where none of them conflicts with another of them.
    #[inline]
    pub(super) fn accesses_apart(&self, node: usize) -> Option<&[Access]> {
        let node = &self.nodes[node];
        node.apart.then_some(&*node.uses.accesses)
    }

    /// Lets a node do these instead.
    pub(super) fn set_accesses(&mut self, node: usize, accesses: &[Access]) {
        let node = &mut self.nodes[node];
        node.uses.accesses.clear();
        node.uses.accesses.extend_from_slice(accesses);
        node.apart = are_apart(accesses);
    }

    /// A node that could run beside this one and would conflict with it, if it did these instead.
    pub(super) fn beside(&mut self, node: usize, accesses: &[Access]) -> Option<usize> {
        if self.nodes[node].uses.all {
            return None;
        }
        let conflicting =
            self.nodes.iter().enumerate().position(|(index, other)| {
                index != node && conflict(&other.uses.accesses, accesses)
            })?;
        self.mark_ordered(node);
        let mut others = self.nodes.iter().enumerate().skip(conflicting);
        others
            .find(|&(index, other)| !self.marks[index] && conflict(&other.uses.accesses, accesses))
            .map(|(index, _)| index)
    }

    /// Marks the node, and all that certainly run before or after it.
    fn mark_ordered(&mut self, node: usize) {
        self.marks.fill(false);
        self.marks[node] = true;
        for index in (0..=node).rev() {
            if self.marks[index] {
                for &earlier in &self.nodes[index].after {
                    self.marks[earlier] = true;
                }
            }
        }
        // Those after it come after a marked one from here on.
        for index in node + 1..self.nodes.len() {
            let after = &self.nodes[index].after;
            self.marks[index] = after.iter().any(|&i| i >= node && self.marks[i]);
        }
    }
}

fn conflict(some: &[Access], others: &[Access]) -> bool {
    some.iter().any(|a| {
        others
            .iter()
            .any(|b| (a.writes || b.writes) && a.start < b.end && b.start < a.end)
    })
}

fn are_apart(accesses: &[Access]) -> bool {
    (1..accesses.len()).all(|index| !conflict(&accesses[..index], &accesses[index..=index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn reads(start: u64) -> Access {
        Access {
            start,
            end: start + 8,
            writes: false,
        }
    }

    fn writes(start: u64) -> Access {
        Access {
            writes: true,
            ..reads(start)
        }
    }

    fn add(order: &mut Order, accesses: &[Access]) -> Vec<usize> {
        let uses = Uses {
            accesses: accesses.to_vec(),
            all: false,
        };
        let after = order.before(&uses);
        order.add(after.clone(), uses);
        after
    }

    fn add_all(order: &mut Order) -> Vec<usize> {
        let uses = Uses {
            accesses: Vec::new(),
            all: true,
        };
        let after = order.before(&uses);
        order.add(after.clone(), uses);
        after
    }

    #[test]
    fn what_conflicts_comes_after_and_what_does_not_beside() {
        let mut order = Order::default();
        assert_eq!(add(&mut order, &[writes(0)]), NONE);
        assert_eq!(add(&mut order, &[writes(8)]), NONE);
        // Read after write.
        assert_eq!(add(&mut order, &[reads(0), writes(16)]), [0]);
        // Two readers run beside each other.
        assert_eq!(add(&mut order, &[reads(0), writes(24)]), [0]);
        // Write after read, which brings the write before it along.
        assert_eq!(add(&mut order, &[writes(0)]), [3, 2]);
        // Write after write.
        assert_eq!(add(&mut order, &[writes(4)]), [4, 1]);
        assert_eq!(add(&mut order, &[reads(100)]), NONE);
    }

    #[test]
    fn only_direct_predecessors_are_named() {
        let mut order = Order::default();
        add(&mut order, &[writes(0)]);
        add(&mut order, &[reads(0), writes(8)]);
        add(&mut order, &[reads(8), writes(16)]);
        assert_eq!(add(&mut order, &[reads(16), writes(0)]), [2]);
    }

    #[test]
    fn what_uses_all_comes_after_all_and_before_all() {
        let mut order = Order::default();
        add(&mut order, &[writes(0)]);
        add(&mut order, &[writes(8)]);
        assert_eq!(add_all(&mut order), [1, 0]);
        assert_eq!(add(&mut order, &[reads(64)]), [2]);
        assert_eq!(add_all(&mut order), [3]);
    }

    #[test]
    fn an_update_must_not_conflict_with_what_runs_beside() {
        let mut order = Order::default();
        add(&mut order, &[writes(0)]); // 0
        add(&mut order, &[writes(8)]); // 1, beside 0
        add(&mut order, &[reads(0), writes(16)]); // 2, after 0
        add(&mut order, &[reads(16), writes(24)]); // 3, after 2
        // Whatever 0 does to what only 2 and 3 use comes before them.
        assert_eq!(order.beside(0, &[writes(16), writes(24)]), None);
        assert_eq!(order.beside(3, &[writes(0)]), None);
        assert_eq!(order.beside(1, &[reads(0)]), Some(0));
        assert_eq!(order.beside(1, &[writes(24)]), Some(3));
        assert_eq!(order.beside(1, &[reads(32)]), None);
        assert!(order.put_after(1, 0));
        assert!(!order.put_after(1, 0));
        assert_eq!(order.beside(1, &[reads(0)]), None);
        assert_eq!(order.beside(1, &[reads(16)]), Some(2));
        // What it did before counts no more.
        order.set_accesses(3, &[]);
        assert_eq!(order.beside(1, &[writes(24)]), None);
        order.set_accesses(3, &[writes(32)]);
        assert_eq!(order.beside(1, &[reads(32)]), Some(3));
    }

    #[test]
    fn accesses_that_conflict_with_each_other_are_not_apart() {
        let mut order = Order::default();
        add(&mut order, &[reads(0), reads(0), writes(8)]);
        assert_eq!(order.accesses_apart(0), Some(order.accesses(0)));
        order.set_accesses(0, &[reads(0), writes(4)]);
        assert_eq!(order.accesses_apart(0), None);
        assert_eq!(order.accesses(0).len(), 2);
    }
}
