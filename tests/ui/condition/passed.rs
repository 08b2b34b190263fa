use gridcall::{Graph, GraphCondition, cover, cudarc::driver::CudaStream, kernel};

#[kernel(ptx = "kernels/conditional.ptx")]
unsafe extern "C" {
    safe fn set_condition(condition: GraphCondition, value: u32);
}

fn number(stream: &CudaStream, handle: u64) {
    let _ = set_condition(stream, cover(1), handle, 1);
}

fn outlives(graph: &mut Graph<'_>, condition: GraphCondition) {
    let mut kept = None;
    let _ = graph.if_(condition, |body| {
        kept = Some(body);
        Ok(())
    });
    drop(kept);
}

fn main() {}
