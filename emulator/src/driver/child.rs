//! Nodes that are graphs: each has a copy of the graph that it was made of, whose nodes an instantiated
//! graph runs as its own.

use std::collections::HashMap;

use super::border::{In, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::graph::{Graph, Node, NodeWork};
use super::work::Work;
use super::{Call, Driver};

impl Driver {
    /// Copies a graph for a node, nodes that are graphs too.
    fn copy_for_node(&mut self, graph: usize) -> Answer<usize> {
        let nodes: Vec<(usize, NodeWork, Vec<usize>)> = self
            .graph(graph)?
            .nodes
            .iter()
            .map(|(handle, node)| (*handle, node.work.clone(), node.deps.clone()))
            .collect();
        let is_bound = |work: &NodeWork| {
            matches!(
                work,
                NodeWork::Conditional(_) | NodeWork::Work(Work::Allocate(_) | Work::Free(_))
            )
        };
        if nodes.iter().any(|(_, work, _)| is_bound(work)) {
            return Err(Code::NOT_SUPPORTED);
        }
        let mut copy = Graph {
            is_of_node: true,
            ..Graph::default()
        };
        let mut copies = HashMap::new();
        for (old, work, deps) in nodes {
            let work = match work {
                NodeWork::Child(inner) => NodeWork::Child(self.copy_for_node(inner)?),
                work => work,
            };
            let handle = self.new_handle();
            copies.insert(old, handle);
            // Edges that were added later may lead from nodes that were.
            copy.nodes.insert(
                handle,
                Node {
                    work,
                    deps,
                    shown: None,
                },
            );
        }
        for node in copy.nodes.values_mut() {
            for dep in &mut node.deps {
                *dep = copies.get(dep).copied().ok_or(Code::INVALID_VALUE)?;
            }
        }
        let handle = self.new_handle();
        self.graphs.insert(handle, copy);
        Ok(handle)
    }

    /// Takes the copy away of a node that is gone.
    pub(crate) fn drop_child(&mut self, work: &NodeWork) {
        if let NodeWork::Child(graph) = work {
            let _ = self.drop_graph(*graph);
        }
    }
}

impl Call {
    fn child_of(&self, node: usize) -> Answer<usize> {
        let graph = self.graph_of(node).ok_or(Code::INVALID_VALUE)?;
        match self.graphs[&graph].nodes[&node].work {
            NodeWork::Child(child) => Ok(child),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

driver_api! {
    fn cuGraphAddChildGraphNode(call, node: Out<usize>, graph: usize, deps: In<usize>, count: usize, child: usize) {
        node.check()?;
        let deps = deps.array(count)?;
        call.graph(graph)?;
        if graph == child {
            return Err(Code::INVALID_VALUE);
        }
        let copy = call.copy_for_node(child)?;
        match call.add_node(graph, NodeWork::Child(copy), deps) {
            Ok(handle) => node.set(handle),
            Err(code) => {
                let _ = call.drop_graph(copy);
                Err(code)
            }
        }
    }

    fn cuGraphChildGraphNodeGetGraph(call, node: usize, graph: Out<usize>) {
        let child = call.child_of(node)?;
        graph.set(child)
    }
}
