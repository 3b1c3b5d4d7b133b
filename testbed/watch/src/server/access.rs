//! Access control of a page: the run's user from this host, and holders of a token.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use dormouse_coordinator::refused_tokens;
use dormouse_identity::{Role, Token};

use super::peer::PagePeer;

/// Name of the cookie with a browser's token.
pub(super) const COOKIE_NAME: &str = "dormouse";

/// Tokens of observers and operators that a page accepts.
#[derive(Clone, Debug)]
pub enum PageTokens {
    /// A fixed list of tokens, accepted as long as the page is served.
    Given(Vec<Token>),
    /// The tokens in the given files at the time of a request: a renewed token replaces the previous one at once.
    Files(Vec<PathBuf>),
}

impl PageTokens {
    /// The tokens that are accepted now.
    pub(super) fn now(&self) -> Vec<Token> {
        let read = |file: &PathBuf| std::fs::read_to_string(file).ok()?.parse().ok();
        match self {
            Self::Given(tokens) => tokens.clone(),
            Self::Files(files) => files.iter().filter_map(read).collect(),
        }
    }
}

/// Access rules of a page.
#[derive(Clone, Debug)]
pub(super) struct PageAccess {
    tokens: PageTokens,
    /// The run's folder, with the list of refused tokens.
    folder: PathBuf,
}

/// Reason for which a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessRefusal {
    /// No token was shown, or a wrong one.
    NoSecret,
    /// The page was requested under a name that is not this host's: another site's page may send its readers here.
    AnotherHost,
    /// A page of another site requests an act.
    AnotherPage,
}

impl AccessRefusal {
    /// The refusal in words, with the remedy.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::NoSecret => {
                "show a token of the run: to look on, that in the file `secret.observer` in the run's \
                 folder, to act, that in `secret.operator`; it goes into the form at / or the header \
                 `authorization: Bearer TOKEN`"
            }
            Self::AnotherHost => {
                "on this host ask for the page as 127.0.0.1, [::1] or localhost, or show a token of the run"
            }
            Self::AnotherPage => "what is done to a run is asked for by its own page",
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NoSecret => StatusCode::UNAUTHORIZED,
            Self::AnotherHost | Self::AnotherPage => StatusCode::FORBIDDEN,
        }
    }
}

impl PageAccess {
    pub(super) const fn new(tokens: PageTokens, folder: PathBuf) -> Self {
        Self { tokens, folder }
    }

    /// Checks whether a request from `peer` may read the page.
    pub(super) fn may_look(
        &self,
        peer: &PagePeer,
        headers: &HeaderMap,
    ) -> Result<(), AccessRefusal> {
        self.check_role(Role::Observer, peer, headers)
    }

    fn check_role(
        &self,
        role: Role,
        peer: &PagePeer,
        headers: &HeaderMap,
    ) -> Result<(), AccessRefusal> {
        if self.shows_token(role, headers) {
            return Ok(());
        }
        if !peer.address.ip().to_canonical().is_loopback() {
            return Err(AccessRefusal::NoSecret);
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(is_this_host) {
            return Err(AccessRefusal::AnotherHost);
        }
        // The page is for the run's user, not for all users of this host.
        let own = nix::unistd::geteuid().as_raw();
        match peer.user() {
            Some(user) if user == own || user == 0 => Ok(()),
            _ => Err(AccessRefusal::NoSecret),
        }
    }

    /// Checks whether a request from `peer` may act: a browser tells which page sends it.
    pub(super) fn may_act(
        &self,
        peer: &PagePeer,
        headers: &HeaderMap,
    ) -> Result<(), AccessRefusal> {
        self.check_role(Role::Operator, peer, headers)?;
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_own = origin.to_str().is_ok_and(|origin| {
            origin.strip_prefix("http://").or(origin.strip_prefix("https://")) == Some(host)
        });
        if is_own { Ok(()) } else { Err(AccessRefusal::AnotherPage) }
    }

    /// Whether a text is a token of this role, or of a higher one.
    pub(super) fn is_token(&self, role: Role, text: &str) -> bool {
        let good = |token: &Token| {
            token.role.includes(role)
                && !token.has_expired()
                && token.is(text.trim().as_bytes())
                // A list that can't be read may contain the token.
                && refused_tokens(&self.folder).is_ok_and(|refused| !refused.contains(&token.id()))
        };
        self.tokens.now().iter().any(good)
    }

    fn shows_token(&self, role: Role, headers: &HeaderMap) -> bool {
        let bearer = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let bearer = bearer.and_then(|it| it.strip_prefix("Bearer "));
        if bearer.is_some_and(|it| self.is_token(role, it)) {
            return true;
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut cookies = cookies.flat_map(|all| all.split(';'));
        cookies.any(|one| {
            let (name, value) = one.trim().split_once('=').unwrap_or_default();
            name == COOKIE_NAME && self.is_token(role, value)
        })
    }
}

/// Whether a `Host` header names this host's loopback address.
fn is_this_host(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok_and(|it| it.ip().is_loopback()) {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    name == "localhost"
        || name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        of.iter()
            .map(|(name, value)| {
                let name = name.parse::<axum::http::HeaderName>().expect("a name");
                (name, value.parse().expect("a value"))
            })
            .collect()
    }

    fn token(role: Role) -> Token {
        let day = std::time::Duration::from_secs(86_400);
        Token::generate(role, Token::of_nobody().authority, day).expect("random bytes")
    }

    fn given(tokens: Vec<Token>) -> PageAccess {
        PageAccess::new(PageTokens::Given(tokens), PathBuf::from("/nowhere"))
    }

    /// A page once accepted the token of its start for ever, and refused the token that had replaced it.
    #[test]
    fn a_renewed_token_takes_the_place_of_the_former_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("run");
        let day = std::time::Duration::from_secs(86_400);
        dormouse_coordinator::make_identity(&folder, day).expect("an identity");
        let file = folder.join(Role::Operator.file());
        let read = || std::fs::read_to_string(&file).expect("a token").trim().to_owned();
        let access = PageAccess::new(PageTokens::Files(vec![file.clone()]), folder.clone());
        let former = read();
        assert!(access.is_token(Role::Operator, &former));
        let renew = dormouse_coordinator::renew_token;
        let token = renew(&folder, Role::Operator, day).expect("a token");
        assert!(
            !access.is_token(Role::Operator, &former) && access.is_token(Role::Observer, &read())
        );
        dormouse_coordinator::refuse_token(&folder, token.id()).expect("room");
        assert!(!access.is_token(Role::Observer, &read()));
    }

    #[test]
    fn loopback_is_ours_and_all_else_shows_a_token() {
        let tokens = [Role::Observer, Role::Operator].map(token);
        let [text, operators] = tokens.each_ref().map(|token| token.line().trim().to_owned());
        let access = given(tokens.to_vec());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let page = listener.local_addr().expect("an address");
        let own = TcpStream::connect(page).expect("it listens");
        let here = own.local_addr().expect("an address");
        let there: SocketAddr = "192.0.2.7:50000".parse().expect("an address");
        let local = headers(&[("host", "127.0.0.1:7381")]);
        assert_eq!(access.may_look(&PagePeer::at(here, page), &local), Ok(()));
        assert_eq!(
            access.may_look(&PagePeer::at(there, page), &local),
            Err(AccessRefusal::NoSecret)
        );
        // Another's connection from this host.
        let nobodys: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        assert_eq!(
            access.may_look(&PagePeer::at(nobodys, page), &local),
            Err(AccessRefusal::NoSecret)
        );
        let rebound = headers(&[("host", "evil.example:7381")]);
        assert_eq!(
            access.may_look(&PagePeer::at(here, page), &rebound),
            Err(AccessRefusal::AnotherHost)
        );
        for shown in [
            headers(&[("authorization", &format!("Bearer {text}"))]),
            headers(&[("cookie", &format!("a=b; dormouse={text}"))]),
        ] {
            assert_eq!(access.may_look(&PagePeer::at(there, page), &shown), Ok(()));
            assert_eq!(
                given(Vec::new()).may_look(&PagePeer::at(there, page), &shown),
                Err(AccessRefusal::NoSecret)
            );
        }
        let bearer = |text: &str| headers(&[("authorization", &format!("Bearer {text}"))]);
        assert_eq!(access.may_act(&PagePeer::at(there, page), &bearer(&operators)), Ok(()));
        assert_eq!(access.may_look(&PagePeer::at(there, page), &bearer(&operators)), Ok(()));
        assert_eq!(
            access.may_act(&PagePeer::at(there, page), &bearer(&text)),
            Err(AccessRefusal::NoSecret)
        );
        let wrong = token(Role::Observer).line().trim().to_owned();
        let wrong = headers(&[("authorization", &format!("Bearer {wrong}"))]);
        assert_eq!(
            access.may_look(&PagePeer::at(there, page), &wrong),
            Err(AccessRefusal::NoSecret)
        );
    }

    #[test]
    fn another_page_does_nothing_to_a_run() {
        let access = given(vec![token(Role::Observer)]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let page = listener.local_addr().expect("an address");
        let own = TcpStream::connect(page).expect("it listens");
        let here = own.local_addr().expect("an address");
        let host = ("host", "localhost:7381");
        for (origin, may) in [
            ("http://localhost:7381", Ok(())),
            ("http://localhost:7382", Err(AccessRefusal::AnotherPage)),
            ("https://evil.example", Err(AccessRefusal::AnotherPage)),
            ("null", Err(AccessRefusal::AnotherPage)),
        ] {
            assert_eq!(
                access.may_act(&PagePeer::at(here, page), &headers(&[host, ("origin", origin)])),
                may,
                "{origin}"
            );
        }
        assert_eq!(access.may_act(&PagePeer::at(here, page), &headers(&[host])), Ok(()));
    }

    #[test]
    fn this_host_has_three_names() {
        for name in
            ["localhost", "localhost:80", "127.0.0.1", "127.0.0.1:7381", "[::1]:7381", "[::1]"]
        {
            assert!(is_this_host(name), "{name}");
        }
        for name in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1:80",
        ] {
            assert!(!is_this_host(name), "{name}");
        }
    }
}
