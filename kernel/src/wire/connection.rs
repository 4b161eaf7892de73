//! The connection file: where to listen, the key that signs, the keys that encrypt; and what about it is not safe.
use super::curve::Keys;
use jupyter_protocol::connection_info::{ConnectionInfo, Transport};
use serde_json::Value;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Where a kernel is served, and how.
#[derive(Clone)]
pub struct Connection {
    pub info: ConnectionInfo,
    pub(super) keys: Option<Arc<Keys>>,
}

impl From<&Connection> for Connection {
    fn from(connection: &Connection) -> Connection {
        connection.clone()
    }
}

/// Without encryption.
impl From<&ConnectionInfo> for Connection {
    fn from(info: &ConnectionInfo) -> Connection {
        Connection { info: info.clone(), keys: None }
    }
}

/// Reads a connection file. What others can do with it goes into the log: the file is Jupyter's, so only Jupyter's
/// settings help.
pub fn connection(file: &Path) -> io::Result<Connection> {
    let bad = |e: &dyn std::fmt::Display| io::Error::other(format!("connection file {}: {e}", file.display()));
    let bytes = xlazy_mime::regular::read(file).map_err(|e| bad(&e))?;
    let fields: Value = serde_json::from_slice(&bytes).map_err(|e| bad(&e))?;
    let keys = keys(&fields).map_err(|e| bad(&e))?;
    let info: ConnectionInfo = serde_json::from_value(fields).map_err(|e| bad(&e))?;
    if std::fs::metadata(file).is_ok_and(|m| m.mode() & 0o077 != 0) {
        super::log(format_args!(
            "others can read the connection file {}, and with its key run code here",
            file.display()
        ));
    }
    warnings(&info, keys.is_some()).iter().for_each(|line| super::log(format_args!("{line}")));
    Ok(Connection { info, keys })
}

/// Both keys of CURVE, or neither: half of them is no reason to go on without.
fn keys(fields: &Value) -> Result<Option<Arc<Keys>>, String> {
    let field = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("{name} is not a text")),
    };
    match (field("curve_publickey")?, field("curve_secretkey")?) {
        (None, None) => Ok(None),
        (Some(public), Some(secret)) => Keys::read(public, secret).map(|keys| Some(Arc::new(keys))),
        (Some(_), None) => Err("it has a curve_publickey and no curve_secretkey".to_owned()),
        (None, Some(_)) => Err("it has a curve_secretkey and no curve_publickey".to_owned()),
    }
}

fn warnings(info: &ConnectionInfo, encrypted: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if info.key.is_empty() && !encrypted {
        let who = match info.transport {
            Transport::TCP => "whoever can connect",
            Transport::IPC => "whoever can open its sockets",
        };
        warnings.push(format!(
            "the connection file has an empty key: messages are not signed, and {who} can run code here. Leave \
             Session.key and JUPYTER_SESSION_KEY unset, and Jupyter makes a key for each kernel"
        ));
    }
    let local = info.ip == "localhost" || info.ip.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if info.transport == Transport::TCP && !encrypted && !local {
        warnings.push(format!(
            "this kernel listens on {} without encryption: code and output can be read on the network. Set \
             KernelManager.transport_encryption = \"required\" in Jupyter (jupyter_client 8.9 or later)",
            info.ip
        ));
    }
    if info.transport == Transport::IPC
        && let Some(folder) = Path::new(&info.ip).parent()
        && let Ok(m) = std::fs::metadata(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        // In a folder that is sticky nobody can replace what is another's.
        && m.mode() & 0o022 != 0 && m.mode() & 0o1000 == 0
    {
        warnings.push(format!(
            "others can write to {}, where this kernel's sockets are, and put theirs in the place of these",
            folder.display()
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Of the specification's examples.
    const PUBLIC: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    const SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

    fn info(fields: Value) -> ConnectionInfo {
        let mut all = json!({
            "ip": "127.0.0.1", "transport": "tcp", "shell_port": 1, "iopub_port": 2, "stdin_port": 3,
            "control_port": 4, "hb_port": 5, "key": "k", "signature_scheme": "hmac-sha256",
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn keys_come_in_pairs_that_fit() {
        let pair = |public: Value, secret: Value| {
            keys(&json!({"curve_publickey": public, "curve_secretkey": secret})).map(|k| k.is_some())
        };
        assert_eq!(pair(json!(PUBLIC), json!(SECRET)), Ok(true));
        assert_eq!(pair(json!(null), json!(null)), Ok(false));
        assert_eq!(keys(&json!({})).map(|k| k.is_some()), Ok(false));
        for (public, secret) in [
            (json!(PUBLIC), json!(null)),
            (json!(null), json!(SECRET)),
            (json!(PUBLIC), json!(3)),
            (json!(SECRET), json!(SECRET)),
            (json!(&PUBLIC[1..]), json!(SECRET)),
            (json!("ü".repeat(20)), json!(SECRET)),
            (json!("#".repeat(40)), json!(SECRET)),
            (json!(""), json!("")),
        ] {
            assert!(pair(public.clone(), secret).is_err(), "{public}");
        }
    }

    #[test]
    fn what_is_not_safe_is_said() {
        let lines = |fields, encrypted| warnings(&info(fields), encrypted).len();
        assert_eq!(lines(json!({}), false), 0);
        assert_eq!(lines(json!({"key": ""}), false), 1);
        assert_eq!(lines(json!({"key": "", "ip": "0.0.0.0"}), false), 2);
        assert_eq!(lines(json!({"key": "", "ip": "0.0.0.0"}), true), 0);
        assert_eq!(lines(json!({"ip": "localhost"}), false), 0);
        assert_eq!(lines(json!({"ip": "/tmp/kernel", "transport": "ipc"}), false), 0);
    }
}
