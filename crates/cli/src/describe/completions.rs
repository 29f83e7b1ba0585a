//! `millpond completions`: scripts with which a shell completes commands and options.

use clap_complete::{Shell, generate};

use crate::error::Failure;
use crate::output::print;

const EXAMPLES: &str = "Examples, each once for a user:
  millpond completions bash > \\
      ~/.local/share/bash-completion/completions/millpond
  millpond completions zsh > ~/.zfunc/_millpond
  millpond completions fish > ~/.config/fish/completions/millpond.fish

zsh reads ~/.zfunc if ~/.zshrc has fpath+=~/.zfunc before compinit.";

/// The shell that is meant.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completions of a program.
pub fn run(args: &Args, mut command: clap::Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    let name = command.get_name().to_string();
    generate(args.shell, &mut command, name, &mut text);
    print(&String::from_utf8_lossy(&text))
}
