//! Errors of the driver and of kernels that run.

use gridcall::{Buffer, Graph};

use crate::kernels::trap_now;

#[test]
fn a_kernel_that_faults_in_a_graph_is_told_of() {
    in_child!([("GRIDCALL_SYNC", "1")], {
        let device = device!();
        let stream = device.new_stream().unwrap();
        let mut y = Buffer::<i32>::zeroed(&stream, 32).unwrap();
        let mut graph = Graph::new(&device).unwrap();
        let mut y = graph.write(&mut y).unwrap();
        // SAFETY: the kernel does nothing but stop.
        unsafe {
            graph.add_unsafe(
                (1, 32),
                trap_now {
                    y: &mut y,
                    index: 3,
                },
            )
        }
        .unwrap();
        let mut graph = graph.instantiate().unwrap();
        let error = graph.launch(&stream).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("a kernel failed in the graph's context: "),
            "{error}"
        );
        let error = graph.launch(&stream).unwrap_err();
        assert!(
            error.to_string().contains("nothing runs in it any more"),
            "{error}"
        );
    });
}
