//! Spans of `tracing`.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use gridcall::{Module, cover, cudarc::driver::CudaStream};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::kernels::saxpy;

/// Writes down what it is told, one line each.
#[derive(Clone)]
struct Notes {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Notes {
    fn of(level: Level, work: impl FnOnce()) -> Vec<String> {
        let notes = Notes {
            level,
            lines: Arc::default(),
        };
        tracing::subscriber::with_default(notes.clone(), work);
        std::mem::take(&mut *notes.lines.lock().unwrap())
    }

    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.extend([format!(" {field}={value:?}")]);
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "gridcall" && *metadata.level() <= self.level
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(format!("new {}", span.metadata().name()));
        span.record(&mut line);
        self.note(line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &span::Id) {
        self.note("enter".to_owned());
    }

    fn exit(&self, _span: &span::Id) {
        self.note("exit".to_owned());
    }
}

/// Launches `saxpy` on four elements.
fn launch(stream: &Arc<CudaStream>) {
    let x = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut y = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let launch = cover(4).block(64).shared_mem_bytes(16);
    saxpy(stream, launch, 4, 2.0, &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0; 4]);
}

#[test]
fn a_first_launch_loads_and_compiles() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    let notes = Notes::of(Level::TRACE, || launch(&stream));
    let raw = stream.cu_stream().addr();
    let expected = [
        "new load kernel=\"saxpy\" device=0",
        "enter",
        "new compile module=\"../kernels/vector.ptx\" device=0",
        "enter",
        "exit",
        "exit",
        &format!(
            "new launch kernel=\"saxpy\" grid=(1, 1, 1) block=(64, 1, 1) shared_mem_bytes=16 \
             stream={raw:#x} device=0"
        ),
        "enter",
        "exit",
    ];
    assert_eq!(notes, expected);
    // It is loaded now.
    assert_eq!(Notes::of(Level::TRACE, || launch(&stream)), expected[6..]);
    assert_eq!(Notes::of(Level::DEBUG, || launch(&stream)), [""; 0]);
}

#[test]
fn a_refused_launch_has_no_span() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    saxpy::load(&device).unwrap();
    let x = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut y = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let notes = Notes::of(Level::TRACE, || {
        assert!(saxpy(&stream, cover(5), 5, 2.0, &x, &mut y).is_err());
        saxpy(&stream, cover(0), 0, 2.0, &x, &mut y).unwrap();
    });
    assert_eq!(notes, [""; 0]);
}

#[test]
fn a_module_is_compiled_under_its_name() {
    let device = device!(alone);
    let text = include_str!("../../kernels/vector.ptx");
    let notes = Notes::of(Level::DEBUG, || {
        Module::from_ptx(&device, text).unwrap();
    });
    assert_eq!(
        notes,
        ["new compile module=\"the PTX\" device=0", "enter", "exit"]
    );
}
