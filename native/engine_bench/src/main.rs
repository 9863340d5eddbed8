//! See `command.rs`.

fn main() -> rillbase_engine_bench::Result<()> {
    rillbase_engine_bench::command::main()
}
