//! Kernels launched on whatever driver is there.
//!
//! Each test takes the device by `device!()`, which says so and ends the test where there is none.
//! One theme a module; what they share is in `support` and `kernels`.

#[macro_use]
mod support;

mod arguments;
mod arrays;
mod attributes;
mod borrowed;
mod caching;
mod capture;
mod contexts;
mod contracts;
mod describe;
mod driver;
mod errors;
mod families;
mod faults;
mod functions;
mod geometry;
mod kernels;
mod loading;
mod modules;
mod occupancy;
mod order;
mod own_arrays;
mod prepared;
mod replay;
mod shared_memory;
mod streams;
mod structs;
mod symbols;
mod tensor_maps;
mod textures;
mod threads;
mod two_devices;
mod views;
