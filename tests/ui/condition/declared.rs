use gridcall::{KernelArg, kernel};

#[kernel(ptx = "kernels/conditional.ptx")]
unsafe extern "C" {
    safe fn set_condition(condition: GraphCondition, value: GraphCondition);
}

#[kernel(ptx = "kernels/conditional.ptx", cuda = "kernels/conditional.cu")]
unsafe extern "C" {
    safe fn count_down(go_on: GraphCondition, left: GraphCondition, rounds: &mut [u32]);
    safe fn newton(go_on: &mut [u32], a: f64, x: &mut [f64], rounds: &mut [u32]);
}

// A condition is a parameter of its own.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Settings {
    go_on: gridcall::GraphCondition,
    tolerance: f32,
}

fn main() {}
