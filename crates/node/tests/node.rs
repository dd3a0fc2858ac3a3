//! The whole node over a journal in memory, in virtual time.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking too")]

mod node {
    mod backups;
    mod beside;
    mod cluster;
    mod commits;
    mod fair_share;
    mod handing_over;
    mod hindered;
    mod lanes;
    mod past;
    mod recovered;
    mod restart;
    mod silence;
    mod take_over;
    mod time;
    mod upgrade;
    mod watching;
    mod world;
}
