//! Graphs that are nodes of others.

use std::{collections::HashMap, ffi::c_uint, mem, ptr};

use cudarc::driver::sys::{CUgraph, CUgraphNode};

use super::{
    Graph, GraphSlice, GraphSliceMut, Inner, Node, NodeOf,
    array::Part,
    condition::check_body,
    error::{GraphError, GraphErrorKind},
    failed,
    functions::Functions,
};

/// A graph that was added to another by [`Graph::add_graph`]: what its nodes and arrays are called there.
/// Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct ChildGraph {
    /// The other.
    graph: usize,
    /// The one that was added.
    child: usize,
    /// What is added to the numbers of its nodes and of its arrays.
    nodes: usize,
    arrays: usize,
}

impl<'a> Graph<'a> {
    /// Adds all of another graph as one node, with its arrays.
    ///
    /// The node as a whole comes after and before what its nodes conflict with, as they are all added now;
    /// among them the order is that of the graph that was added. It lives on in this one: arrays
    /// that it borrowed stay borrowed, and what it owned this graph owns. What stands for them, and its
    /// nodes, are called otherwise here, which the [`ChildGraph`] tells. A graph that was added can be
    /// [updated](super::GraphExec::update) node by node, and have graphs as nodes itself.
    ///
    /// ```no_run
    /// use gridcall::{Buffer, Graph, cover, kernel};
    ///
    /// #[kernel(ptx = "../kernels/vector.ptx")]
    /// unsafe extern "C" {
    ///     #[requires(y.len() >= n)]
    ///     safe fn scale(y: &mut [f32], a: f32, n: i32);
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ctx = gridcall::device(0)?;
    /// let stream = ctx.new_stream()?;
    /// let mut step = Graph::new(&ctx)?;
    /// let mut y = step.own(Buffer::from_slice(&stream, &[1.0_f32, 2.0])?)?;
    /// let double = step.add(cover(2), scale { y: &mut y, a: 2.0, n: 2 })?;
    ///
    /// let mut graph = Graph::new(&ctx)?;
    /// let (_, step) = graph.add_graph(step)?;
    /// let (mut y, double) = (step.slice_mut(y)?, step.node(double)?);
    /// graph.add(cover(2), scale { y: &mut y, a: 10.0, n: 2 })?; // runs after it
    ///
    /// let mut graph = graph.instantiate()?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [20.0, 40.0]);
    /// graph.update(double, cover(2), scale { y: &mut y, a: 0.5, n: 2 })?;
    /// graph.launch(&stream)?;
    /// assert_eq!(graph.slice(y)?.to_vec()?, [100.0, 200.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the graph that is added is of another context, has conditions, which the driver takes in no such
    /// graph, or is incomplete, or the driver refuses. It is gone then, and this one as it was.
    pub fn add_graph(&mut self, child: Graph<'a>) -> Result<(Node, ChildGraph), GraphError> {
        child.is_complete()?;
        let mut child = child.inner;
        if child.context.cu_ctx() != self.inner.context.cu_ctx() {
            return Err(GraphErrorKind::AddedElsewhere {
                graph: self.inner.context.ordinal(),
                added: child.context.ordinal(),
            }
            .into());
        }
        if !child.conditions.is_empty() {
            return Err(GraphErrorKind::ChildWithConditions.into());
        }
        if self.inner.order.body() != 0 {
            check_body(child.functions, child.raw)?;
        }
        let mut uses = child.order.all_uses();
        uses.all |= self.in_order;
        let mut copies = HashMap::new();
        let mut bodies = Vec::new();
        let node = self.add_with_uses(uses, |inner, node, after| {
            let functions = inner.functions;
            // SAFETY: `node` takes the answer; both graphs and `after` are the driver's own, and the one
            // that is added is copied by the driver.
            unsafe {
                (functions.add_child_graph_node)(
                    node,
                    inner.body(),
                    after.as_ptr(),
                    after.len(),
                    child.raw,
                )
            }
            .result()
            .map_err(|code| failed("cuGraphAddChildGraphNode", code))?;
            // SAFETY: it holds the answer.
            let added = unsafe { node.read() };
            let found = copies_in(functions, added, child.raw, &mut copies).and_then(|copy| {
                bodies = child.bodies_in(functions, copy, &copies)?;
                if child
                    .nodes
                    .iter()
                    .any(|node| !copies.contains_key(&node.raw))
                {
                    return Err(GraphErrorKind::OtherCopy.into());
                }
                Ok(())
            });
            if found.is_err() {
                // A failure leaves a node that nothing comes after, and the first error counts.
                // SAFETY: the node was added just now, and nobody knows it.
                let _ = unsafe { (functions.destroy_node)(added) };
            }
            found
        })?;
        let inner = &mut self.inner;
        let added = ChildGraph {
            graph: inner.id,
            child: child.id,
            nodes: inner.nodes.len(),
            arrays: inner.arrays.len(),
        };
        inner
            .order
            .add_nodes(node.index, mem::take(&mut child.order));
        inner.bodies.append(&mut bodies);
        let nodes = mem::take(&mut child.nodes).into_iter();
        inner.nodes.extend(nodes.map(|node| NodeOf {
            raw: copies[&node.raw],
            ..node
        }));
        inner.arrays.append(&mut child.arrays);
        Ok((node, added))
    }
}

impl Inner<'_> {
    /// The driver's graphs of the copy that a node has of this one, by their numbers in its order.
    fn bodies_in(
        &self,
        functions: &Functions,
        copy: CUgraph,
        copies: &HashMap<CUgraphNode, CUgraphNode>,
    ) -> Result<Vec<CUgraph>, GraphError> {
        let mut bodies = vec![copy];
        for node in self.order.nodes_with_bodies() {
            let node = copies.get(&self.nodes[node].raw);
            let node = node.ok_or(GraphErrorKind::OtherCopy)?;
            bodies.push(graph_of(functions, *node)?);
        }
        Ok(bodies)
    }
}

/// The graph that a node has a copy of.
pub(super) fn graph_of(functions: &Functions, node: CUgraphNode) -> Result<CUgraph, GraphError> {
    let mut graph = ptr::null_mut();
    // SAFETY: the node is the driver's own; `graph` takes the answer.
    unsafe { (functions.child_graph_node_get_graph)(node, &raw mut graph) }
        .result()
        .map_err(|code| failed("cuGraphChildGraphNodeGetGraph", code))?;
    Ok(graph)
}

/// Finds the copies of the nodes of a graph in the node that was made of it, also of those in graphs that
/// are nodes of it. Gives the copy of the graph.
///
/// The nodes of a copy are taken to be in the order of those that they are copies of, which is checked as far
/// as it can be: by their number and types.
fn copies_in(
    functions: &Functions,
    node: CUgraphNode,
    graph: CUgraph,
    copies: &mut HashMap<CUgraphNode, CUgraphNode>,
) -> Result<CUgraph, GraphError> {
    /// `CU_GRAPH_NODE_TYPE_GRAPH`.
    const GRAPH: c_uint = 4;
    let copy = graph_of(functions, node)?;
    let (old, new) = (nodes_of(functions, graph)?, nodes_of(functions, copy)?);
    if old.len() != new.len() {
        return Err(GraphErrorKind::OtherCopy.into());
    }
    for (old, new) in old.into_iter().zip(new) {
        let ty = type_of(functions, old)?;
        if type_of(functions, new)? != ty {
            return Err(GraphErrorKind::OtherCopy.into());
        }
        if ty == GRAPH {
            copies_in(functions, new, graph_of(functions, old)?, copies)?;
        }
        copies.insert(old, new);
    }
    Ok(copy)
}

pub(super) fn nodes_of(
    functions: &Functions,
    graph: CUgraph,
) -> Result<Vec<CUgraphNode>, GraphError> {
    let nodes = |to: *mut CUgraphNode, count: &mut usize| {
        // SAFETY: the graph is the driver's own; there is room for so many nodes, or none is asked for.
        unsafe { (functions.get_nodes)(graph, to, count) }
            .result()
            .map_err(|code| failed("cuGraphGetNodes", code))
    };
    let mut count = 0;
    nodes(ptr::null_mut(), &mut count)?;
    let mut all = vec![ptr::null_mut(); count];
    if count > 0 {
        nodes(all.as_mut_ptr(), &mut count)?;
    }
    Ok(all)
}

/// `CUgraphNodeType`.
pub(super) fn type_of(functions: &Functions, node: CUgraphNode) -> Result<c_uint, GraphError> {
    let mut ty = 0;
    // SAFETY: it is a node of a graph of the driver's; `ty` takes the answer.
    unsafe { (functions.node_get_type)(node, &raw mut ty) }
        .result()
        .map_err(|code| failed("cuGraphNodeGetType", code))?;
    Ok(ty)
}

impl ChildGraph {
    /// What a node of the graph that was added is called in the other.
    ///
    /// # Errors
    ///
    /// If it is of another graph.
    pub fn node<D>(&self, node: Node<D>) -> Result<Node<D>, GraphError> {
        if node.graph != self.child {
            return Err(GraphErrorKind::OtherGraph { what: "the node" }.into());
        }
        Ok(Node {
            graph: self.graph,
            index: self.nodes + node.index,
            ..node
        })
    }

    /// What stands for an array of the graph that was added, or a part of one, in the other.
    ///
    /// # Errors
    ///
    /// If it is of another graph.
    pub fn slice<T>(&self, slice: GraphSlice<T>) -> Result<GraphSlice<T>, GraphError> {
        self.part(slice.part()).map(GraphSlice::of)
    }

    /// The same for one that is written.
    ///
    /// # Errors
    ///
    /// If it is of another graph.
    pub fn slice_mut<T>(&self, slice: GraphSliceMut<T>) -> Result<GraphSliceMut<T>, GraphError> {
        self.part(slice.part()).map(GraphSliceMut::of)
    }

    fn part(&self, part: &Part) -> Result<Part, GraphError> {
        if part.graph != self.child {
            return Err(GraphErrorKind::OtherGraph { what: "the array" }.into());
        }
        Ok(Part {
            graph: self.graph,
            array: self.arrays + part.array,
            ..*part
        })
    }
}
