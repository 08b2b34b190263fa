//! A second device: refused by name, copied to, or let in.

use gridcall::{Buffer, BufferErrorKind, Pinned, cover};

use crate::{
    kernels::{copy, fill, saxpy, slow_add, slow_copy},
    support::{LONG, ramp, say, second_device},
};

#[test]
fn a_stream_of_another_device_is_refused() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let (here, there) = (first.new_stream().unwrap(), second.new_stream().unwrap());
    let mut x = Buffer::<f32>::zeroed(&here, 16).unwrap();
    let error = fill(&there, cover(16), &mut x, 1.0, 16).unwrap_err();
    assert!(error.to_string().contains("device 0"), "{error}");
    let error = x.clear(&there).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the buffer is in a context of device 0, the stream belongs to another context, of \
         device 1; copy it there with `clone_to`"
    );
    let host = || Pinned::<f32>::zeroed(&second, 16).unwrap();
    let refused = [
        x.download(&there, host()).err(),
        x.upload(&there, host()).err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert!(
            matches!(error.kind(), BufferErrorKind::OtherContext { .. }),
            "{error}"
        );
    }
    assert!(there.clone_dtoh(&x).is_err());
}

#[test]
fn copies_between_devices_are_in_order() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let (here, there) = (first.new_stream().unwrap(), second.new_stream().unwrap());
    let mut x = Buffer::from_slice(&here, &ramp(1024)).unwrap();
    slow_add(&here, (4, 256), &mut x, 1.0, LONG).unwrap();
    let mut y = x.clone_to(&there).unwrap();
    fill(&here, cover(1024), &mut x, 0.0, 1024).unwrap();
    slow_add(&there, (4, 256), &mut y, 1.0, LONG).unwrap();
    x.copy_from(&here, y.as_slice()).unwrap();
    fill(&there, cover(1024), &mut y, 0.0, 1024).unwrap();
    let expected: Vec<f32> = ramp(1024).iter().map(|x| x + 2.0).collect();
    assert_eq!(x.to_vec().unwrap(), expected);
    assert_eq!(y.to_vec().unwrap(), [0.0; 1024]);
}

#[test]
fn a_device_that_was_let_in_reads_and_writes() {
    let first = device!();
    let Some(second) = second_device(this_test!()) else {
        return;
    };
    let (here, there) = (first.new_stream().unwrap(), second.new_stream().unwrap());
    let mut x = Buffer::from_slice(&here, &ramp(1024)).unwrap();
    let mut y = Buffer::<f32>::zeroed(&there, 1024).unwrap();
    slow_add(&here, (4, 256), &mut x, 1.0, LONG).unwrap();
    let peer = match x.peer(&second) {
        Ok(peer) => peer,
        Err(error) => {
            say(&format!("{}: not run further: {error}", this_test!()));
            return;
        }
    };
    slow_copy(&there, cover(1024), &peer, &mut y, 1024, LONG).unwrap();
    // A write at home waits for the read over there, and a write there for it.
    fill(&here, cover(1024), &mut x, 1.0, 1024).unwrap();
    saxpy(
        &there,
        cover(1024),
        1024,
        2.0,
        &y,
        &mut x.peer_mut(&second).unwrap(),
    )
    .unwrap();
    let mut z = Buffer::<f32>::zeroed(&here, 1024).unwrap();
    copy(&here, cover(1024), &x, &mut z, 1024).unwrap();
    let expected: Vec<f32> = ramp(1024).iter().map(|x| 2.0 * (x + 1.0) + 1.0).collect();
    assert_eq!(z.to_vec().unwrap(), expected);
    assert!(
        fill(
            &here,
            cover(1024),
            &mut x.peer_mut(&second).unwrap(),
            0.0,
            1024
        )
        .is_err()
    );
}
