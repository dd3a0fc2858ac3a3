//! The whole node over a journal in memory, in virtual time.

mod node {
    mod commits;
    mod handing_over;
    mod restart;
    mod silence;
    mod time;
    mod watching;
    mod world;
}
