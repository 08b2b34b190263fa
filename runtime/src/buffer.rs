mod order;
mod uses;
