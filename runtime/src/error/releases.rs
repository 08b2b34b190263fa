//! Which PTX belongs to which release of CUDA.

/// The PTX versions that CUDA toolkits write and drivers of that release read, by NVIDIA's
/// [release history](https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes).
const RELEASES: [(u32, (u32, u32)); 25] = [
    (11_000, (7, 0)),
    (11_010, (7, 1)),
    (11_020, (7, 2)),
    (11_030, (7, 3)),
    (11_040, (7, 4)),
    (11_050, (7, 5)),
    (11_060, (7, 6)),
    (11_070, (7, 7)),
    (11_080, (7, 8)),
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_060, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
    (13_000, (9, 0)),
    (13_010, (9, 1)),
    (13_020, (9, 2)),
    (13_030, (9, 3)),
    (13_040, (9, 4)),
    (13_050, (9, 5)),
];

/// The toolkit that writes this PTX, for a message.
pub(super) fn toolkit(ptx: (u32, u32)) -> String {
    RELEASES
        .iter()
        .find(|(_, isa)| *isa == ptx)
        .map_or_else(String::new, |(cuda, _)| {
            format!(" (CUDA {}.{})", cuda / 1000, cuda % 1000 / 10)
        })
}

/// The PTX that a driver of this version reads, for a message.
pub(super) fn isa(driver: u32) -> String {
    RELEASES
        .iter()
        .find(|(cuda, _)| *cuda == driver)
        .map_or_else(String::new, |(_, (major, minor))| {
            format!(" (PTX ISA {major}.{minor})")
        })
}
