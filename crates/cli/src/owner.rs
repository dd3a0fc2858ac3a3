//! The owner that a lease gets when none is named: `user@host:pid`.

use leasehold_types::OwnerId;

/// The pid is that of the process that called us, such as the script: ours is gone before anyone could look for it.
pub(crate) fn default_owner() -> OwnerId {
    let text = format!("{}@{}:{}", user(), host(), std::os::unix::process::parent_id());
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    OwnerId::new(&clean).expect("it has an @, no control character, and its parts are cut short")
}

fn user() -> String {
    let named =
        ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let user = named.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    user.chars().take(32).collect()
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().chars().take(64).filter(|c| c.is_ascii()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_owner_names_user_host_and_calling_process() {
        let owner = default_owner();
        let (user, rest) = owner.as_str().split_once('@').unwrap();
        let (_, pid) = rest.rsplit_once(':').unwrap();
        assert!(!user.is_empty());
        assert_eq!(pid.parse(), Ok(std::os::unix::process::parent_id()));
    }
}
