use gridcall::AsDeviceViewMut;

#[derive(AsDeviceViewMut)]
struct Nothing;

#[derive(AsDeviceViewMut)]
enum Either<A> {
    Left(A),
}

fn main() {}
