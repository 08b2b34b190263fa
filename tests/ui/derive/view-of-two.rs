use gridcall::AsDeviceView;

#[derive(AsDeviceView)]
struct Pair<A> {
    first: A,
    second: A,
}

#[derive(AsDeviceView)]
struct Both<A> {
    #[view]
    first: A,
    #[view]
    second: A,
}

fn main() {}
