//! Where kernels wait for more than their block.

use gridcall_ptx::{GridWaits, Module};

fn waits(entry: &str, text: &str) -> GridWaits {
    let module = Module::parse(text).unwrap();
    module
        .grid_waits(module.entry(entry).unwrap(), text)
        .unwrap()
}

#[test]
fn the_barrier_of_cooperative_groups_is_known_from_every_compiler() {
    for (text, line) in [
        (include_str!("corpus/coop_grid.nvrtc13.sm_75.ptx"), "trap;"),
        (include_str!("corpus/coop_grid.nvrtc13.sm_90.ptx"), "trap;"),
        (include_str!("corpus/coop_grid.nvrtc13.sm_100.ptx"), "trap;"),
    ] {
        let found = waits("coop_grid", text).for_grid.unwrap();
        assert_eq!(
            text.lines().nth(found.line as usize - 1).unwrap().trim(),
            line
        );
        assert_eq!(waits("coop_tile", text), GridWaits::default());
    }
}

/// A kernel that finds no workspace and does this.
fn without_workspace(does: &str) -> GridWaits {
    let text = format!(
        ".version 9.0\n.target sm_90\n.entry k() {{ .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
        mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {{%r2, %r1}};
        {does} ret; }}"
    );
    waits("k", &text)
}

#[test]
fn a_trap_that_need_not_come_proves_nothing() {
    let traps = "setp.ne.s64 %p1, %rd1, 0; @%p1 bra L; trap; L:";
    assert!(without_workspace(traps).for_grid.is_some());
    for other in [
        "",
        "trap;",
        // Whoever asks whether the grid is valid goes another way.
        "setp.eq.s64 %p1, %rd1, 0; @%p1 bra L; trap; L:",
        "setp.ne.s64 %p1, %rd1, 0; @!%p1 bra L; trap; L:",
        "setp.ne.s64 %p1, %rd1, 1; @%p1 bra L; trap; L:",
        "setp.ne.s64 %p1, %rd1, 0; @%p1 bra L; M: trap; L:",
        "setp.ne.s32 %p1, %tid.x, 0; @%p1 bra L; trap; L:",
        "setp.ne.s64 %p1, %rd1, 0; @%p1 bra L; ret; L:",
    ] {
        assert_eq!(without_workspace(other).for_grid, None, "{other}");
    }
}

#[test]
fn a_wait_for_other_grids_counts_also_in_a_function() {
    let text = ".version 9.0\n.target sm_90
        .func inner() { griddepcontrol.wait; ret; }
        .func outer() { call inner; ret; }
        .entry by_call() { call outer; ret; }
        .entry itself() { griddepcontrol.wait; ret; }
        .entry launches() { griddepcontrol.launch_dependents; ret; }
        .entry says() { // griddepcontrol.wait
            ret; }
        .entry names() { .reg .b64 inner; ret; }";
    let line = |entry| {
        waits(entry, text)
            .for_dependencies
            .map(|position| position.line)
    };
    assert_eq!(line("by_call"), Some(3));
    assert_eq!(line("itself"), Some(6));
    assert_eq!(line("launches"), None);
    assert_eq!(line("says"), None);
    assert_eq!(line("names"), None);
}
