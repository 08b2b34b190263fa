//! Which node of a graph runs after which. Knows no driver.
//!
//! Two nodes conflict if they use overlapping memory and one of them writes to it. A node comes
//! after all nodes before it, in the order they were added, that it conflicts with; others may run
//! beside it.
//!
//! A node that runs bodies, by a condition, does all that the nodes in them do. Those come after each
//! other within one body; of nodes of two bodies of one node, or of two rounds, never do two run at
//! the same time.

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
    /// The bodies, each by the node that runs it and what decides whether it does. The graph itself is
    /// body 0, and none of these.
    bodies: Vec<Body>,
    /// The body that nodes are added to.
    body: usize,
    /// Room for one mark a node, so that looking for one allocates nothing.
    marks: Vec<bool>,
}

#[derive(Debug)]
struct Node {
    /// Those it directly comes after, which were added earlier.
    after: Vec<usize>,
    uses: Uses,
    /// The body that it is in.
    body: usize,
    /// Whether none of its accesses conflicts with another of them.
    apart: bool,
}

/// A body of a node.
#[derive(Clone, Copy, Debug)]
struct Body {
    node: usize,
    /// What decides whether it runs; none if it is a graph that was added, which always does.
    condition: Option<Access>,
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
        self.before_in(self.nodes.len(), uses)
    }

    /// The fewest nodes of the body that one must directly come after, of those before node `end`.
    fn before_in(&mut self, end: usize, uses: &Uses) -> Vec<usize> {
        let mut direct = Vec::new();
        self.marks.fill(false);
        // A mark says that what is found to come after others brings this one with it.
        for (index, node) in self.nodes[..end].iter().enumerate().rev() {
            if !self.marks[index] {
                if node.body != self.body || !uses.conflict(&node.uses) {
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
        let body = self.body;
        self.nodes.push(Node {
            after,
            uses,
            body,
            apart,
        });
        self.marks.push(false);
        self.nodes.len() - 1
    }

    /// The body that nodes are added to; 0 is the graph itself.
    pub(super) fn body(&self) -> usize {
        self.body
    }

    /// The body that a node is in.
    pub(super) fn body_of(&self, node: usize) -> usize {
        self.nodes[node].body
    }

    /// From now on, nodes are added to a body of the node that was added last but for those in its
    /// bodies, which runs it by this condition. Gives the body's number: each has the next.
    pub(super) fn begin_body(&mut self, node: usize, condition: Access) -> usize {
        self.bodies.push(Body {
            node,
            condition: Some(condition),
        });
        self.body = self.bodies.len();
        self.body
    }

    /// Ends the body: nodes are added to what its node is in.
    pub(super) fn end_body(&mut self) {
        if let Some(body) = self.body.checked_sub(1) {
            self.body = self.nodes[self.bodies[body].node].body;
        }
    }

    /// Puts a node whose bodies have ended behind those that it must directly come after, as a whole,
    /// and says which.
    pub(super) fn close(&mut self, node: usize) -> &[usize] {
        self.gather(node);
        let uses = Uses {
            accesses: self.nodes[node].uses.accesses.clone(),
            all: self.nodes[node].uses.all,
        };
        let after = self.before_in(node, &uses);
        self.nodes[node].after = after;
        &self.nodes[node].after
    }

    /// Lets a node with bodies do what the nodes in them do.
    fn gather(&mut self, node: usize) {
        let mut accesses: Vec<Access> = Vec::new();
        let mut all = self.nodes[node].uses.all;
        let mut add = |access: &Access| {
            if !accesses.contains(access) {
                accesses.push(*access);
            }
        };
        for (index, body) in self.bodies.iter().enumerate() {
            if body.node == node {
                body.condition.iter().for_each(&mut add);
                for inner in self.nodes.iter().filter(|inner| inner.body == index + 1) {
                    inner.uses.accesses.iter().for_each(&mut add);
                    all |= inner.uses.all;
                }
            }
        }
        self.nodes[node].uses = Uses { accesses, all };
    }

    /// What all nodes do together.
    pub(super) fn all_uses(&self) -> Uses {
        let mut accesses: Vec<Access> = Vec::new();
        for access in self.nodes.iter().flat_map(|node| &node.uses.accesses) {
            if !accesses.contains(access) {
                accesses.push(*access);
            }
        }
        let all = self.nodes.iter().any(|node| node.uses.all);
        Uses { accesses, all }
    }

    /// Adds the nodes of a graph that the node that was added last is, with their bodies.
    pub(super) fn add_nodes(&mut self, node: usize, added: Order) {
        let (first, body) = (self.nodes.len(), self.bodies.len() + 1);
        self.bodies.push(Body {
            node,
            condition: None,
        });
        self.bodies.extend(added.bodies.into_iter().map(|of| Body {
            node: first + of.node,
            ..of
        }));
        self.marks.extend(added.marks);
        self.nodes.extend(added.nodes.into_iter().map(|node| Node {
            after: node.after.into_iter().map(|index| first + index).collect(),
            body: body + node.body,
            ..node
        }));
    }

    /// The nodes that have bodies: of each of these, in their order.
    pub(super) fn nodes_with_bodies(&self) -> impl Iterator<Item = usize> + '_ {
        self.bodies.iter().map(|body| body.node)
    }

    /// Whether a node is of a graph that was added.
    pub(super) fn is_added(&self, node: usize) -> bool {
        let body = self.nodes[node].body.checked_sub(1);
        body.is_some_and(|body| self.bodies[body].condition.is_none())
    }

    /// The node that runs the body that a node is in.
    fn outer(&self, node: usize) -> Option<usize> {
        let body = self.nodes[node].body.checked_sub(1)?;
        Some(self.bodies[body].node)
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
    pub(super) fn set_accesses(&mut self, index: usize, accesses: &[Access]) {
        let node = &mut self.nodes[index];
        node.uses.accesses.clear();
        node.uses.accesses.extend_from_slice(accesses);
        node.apart = are_apart(accesses);
        let mut outer = self.outer(index);
        while let Some(node) = outer {
            self.gather(node);
            outer = self.outer(node);
        }
    }

    /// A node that could run beside this one and would conflict with it, if it did these instead.
    pub(super) fn beside(&mut self, node: usize, accesses: &[Access]) -> Option<usize> {
        let found = self.beside_in_body(node, accesses);
        let mut outer = self.outer(node);
        // Whoever runs the body does the same.
        found.or_else(|| {
            while let Some(node) = outer {
                let found = self.beside_in_body(node, accesses);
                if found.is_some() {
                    return found;
                }
                outer = self.outer(node);
            }
            None
        })
    }

    fn beside_in_body(&mut self, node: usize, accesses: &[Access]) -> Option<usize> {
        let Node { body, uses, .. } = &self.nodes[node];
        let body = *body;
        if uses.all {
            return None;
        }
        let is_other =
            |other: &Node| other.body == body && conflict(&other.uses.accesses, accesses);
        let mut nodes = self.nodes.iter().enumerate();
        let conflicting = nodes.position(|(index, other)| index != node && is_other(other))?;
        self.mark_ordered(node);
        let mut others = self.nodes.iter().enumerate().skip(conflicting);
        others
            .find(|&(index, other)| !self.marks[index] && is_other(other))
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
    fn a_node_with_bodies_does_what_they_do() {
        let condition = reads(1000);
        let mut order = Order::default();
        add(&mut order, &[writes(0)]); // 0
        add(&mut order, &[writes(8)]); // 1, beside 0
        add(&mut order, &[writes(1000)]); // 2: sets the condition
        assert_eq!(add_body_node(&mut order), 3);
        assert_eq!(order.begin_body(3, condition), 1);
        assert_eq!(add(&mut order, &[reads(0), writes(16)]), NONE); // 4
        assert_eq!(add(&mut order, &[reads(16), writes(24)]), [4]); // 5
        assert_eq!(add(&mut order, &[writes(32)]), NONE); // 6, beside both
        order.end_body();
        assert_eq!(order.body(), 0);
        assert_eq!(order.close(3), [2, 0]);
        assert_eq!(add(&mut order, &[reads(24)]), [3]); // 7
        assert_eq!(add(&mut order, &[reads(8)]), [1]); // 8, beside 3
        assert_eq!((order.body_of(5), order.body_of(7)), (1, 0));
        // What runs beside within the body, and beside the whole of it.
        assert_eq!(order.beside(6, &[reads(16)]), Some(4));
        assert_eq!(order.beside(6, &[writes(8)]), Some(1));
        assert_eq!(order.beside(6, &[writes(0)]), Some(4));
        assert_eq!(order.beside(5, &[writes(0)]), None);
        assert_eq!(order.beside(8, &[writes(32)]), Some(3));
        // An update in the body is one of the node that runs it.
        order.set_accesses(6, &[writes(40)]);
        assert_eq!(order.beside(8, &[writes(32)]), None);
        assert_eq!(order.beside(8, &[writes(40)]), Some(3));
        assert_eq!(order.beside(8, &[writes(1000)]), Some(2));
    }

    #[test]
    fn bodies_lie_in_bodies() {
        let mut order = Order::default();
        let outer = add_body_node(&mut order); // 0
        assert_eq!(order.begin_body(outer, reads(1000)), 1);
        add(&mut order, &[writes(0)]); // 1
        let inner = add_body_node(&mut order); // 2
        assert_eq!(order.begin_body(inner, reads(2000)), 2);
        add_all(&mut order); // 3
        order.end_body();
        assert_eq!(order.begin_body(inner, reads(2000)), 3);
        assert_eq!(add(&mut order, &[writes(8)]), NONE); // 4: the other body
        order.end_body();
        assert_eq!(order.close(inner), [1]);
        assert_eq!(order.body(), 1);
        order.end_body();
        assert_eq!(order.close(outer), NONE);
        // It may use anything, and so do those around it.
        assert_eq!(add(&mut order, &[reads(64)]), [0]);
        assert_eq!(order.beside(4, &[writes(64)]), None);
    }

    fn add_body_node(order: &mut Order) -> usize {
        let uses = Uses {
            accesses: Vec::new(),
            all: false,
        };
        order.add(Vec::new(), uses)
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

    #[test]
    fn a_graph_that_is_added_is_a_body_that_always_runs() {
        let mut added = Order::default();
        add(&mut added, &[writes(0)]);
        add(&mut added, &[reads(0), writes(8)]);
        // A graph within it.
        let mut inner = Order::default();
        add(&mut inner, &[writes(16)]);
        let node = added.add(Vec::new(), inner.all_uses());
        added.add_nodes(node, inner);

        let mut order = Order::default();
        add(&mut order, &[writes(8)]);
        add(&mut order, &[writes(100)]);
        let uses = added.all_uses();
        assert_eq!(uses.accesses, [writes(0), reads(0), writes(8), writes(16)]);
        let after = order.before(&uses);
        assert_eq!(after, [0]);
        let node = order.add(after, uses);
        order.add_nodes(node, added);
        // Nodes 3 and 4, 5 with 6 in it.
        assert_eq!(order.nodes[4].after, [3]);
        let bodies = [3, 4, 5, 6].map(|node| order.body_of(node));
        assert_eq!(bodies, [1, 1, 1, 2]);
        assert!(!order.is_added(node) && order.is_added(3) && order.is_added(6));
        assert_eq!(order.nodes_with_bodies().collect::<Vec<_>>(), [2, 5]);
        // What uses memory of one of them comes after the node as a whole.
        assert_eq!(add(&mut order, &[writes(16)]), [2]);
        // Nothing orders it with what is beside the graph, in whatever depth.
        assert_eq!(order.beside(6, &[writes(100)]), Some(1));
        assert_eq!(order.beside(6, &[writes(8)]), Some(4));
        // What it does, those that it is in do.
        order.set_accesses(6, &[reads(200)]);
        assert!(order.accesses(2).contains(&reads(200)));
        assert!(!order.accesses(2).contains(&writes(16)));
        assert!(order.accesses(2).contains(&writes(0)));
        assert_eq!(add(&mut order, &[writes(200)]), [2]);
    }

    #[test]
    fn a_graph_that_conflicts_with_all_does_so_as_a_node() {
        let mut added = Order::default();
        add_all(&mut added);
        assert!(added.all_uses().all);
        let mut order = Order::default();
        add(&mut order, &[writes(0)]);
        let uses = added.all_uses();
        let after = order.before(&uses);
        assert_eq!(after, [0]);
    }
}
