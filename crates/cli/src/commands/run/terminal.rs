//! Which process group the terminal listens to.

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input, if there is one.
pub(super) struct Terminal;

impl Terminal {
    /// The group of this process.
    pub(super) fn own_group() -> i32 {
        getpgrp().as_raw_nonzero().get()
    }

    /// Makes `group` the one that reads the terminal and is interrupted by it. Only a process of the present foreground
    /// group may do that without being stopped, so a job in the background leaves the terminal alone.
    pub(super) fn give_to(group: Pid) {
        let input = rustix::stdio::stdin();
        if tcgetpgrp(input).is_ok_and(|foreground| foreground == getpgrp()) {
            // A terminal that went away meanwhile is nobody's.
            let _ = tcsetpgrp(input, group);
        }
    }
}
