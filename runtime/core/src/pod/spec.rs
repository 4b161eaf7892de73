//! What `%pod start` is told: how many workers, where, and how they are reached.
use std::net::{IpAddr, ToSocketAddrs};

/// A pod as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Of each worker the host, where that has a name, and the command that starts it, for `sh -c`.
    pub workers: Vec<(String, String)>,
    /// What the commands start is a shell, which is told to become a worker.
    pub arrives: bool,
    /// The workers' platform; their own choice where it is empty.
    pub platform: String,
    /// How many slices of a TPU the workers are, which data centres' network joins.
    slices: usize,
    /// What is set in each worker before its plugin is loaded; `{i}`, `{n}`, `{host}` and `{hosts}` are its own, and so are `{slice}`,
    /// `{in_slice}` and `{of_slice}`, the hosts of its slice; `{first}` is the first of all.
    variables: Vec<(String, String)>,
}

/// The ways that are known by name, and what each is.
const WAYS: &[(&str, &str)] = &[
    ("local", "exec {worker}"),
    ("ssh", "exec ssh -o BatchMode=yes -o ConnectTimeout=20 {host} {worker}"),
    ("gcloud", "exec gcloud compute tpus tpu-vm ssh {name} {zone} --worker={i} --command={quoted}"),
    ("kubectl", "exec kubectl exec -i {host} -- {worker}"),
    ("srun", "exec srun --nodes=1 --ntasks=1 {nodelist} {worker}"),
];

/// What a pod has at most: a node of the graph says in a byte where it is.
const MOST: usize = 128;

impl Spec {
    /// Reads `--workers N --via WAY …`; `here` starts a worker on this machine.
    ///
    /// Errors: what is wrong with it, and what there is.
    pub fn read(text: &str, here: &str) -> Result<Spec, String> {
        let mut words = words(text)?.into_iter();
        let (mut workers, mut via, mut hosts) = (None, None, Vec::new());
        let (mut devices, mut platform, mut name, mut zone, mut worker) = (None, String::new(), None, None, None);
        let (mut variables, mut slices) = (Vec::new(), 1);
        while let Some(option) = words.next() {
            let (option, with) = match option.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
                _ => (option, None),
            };
            let mut value = || with.clone().or_else(|| words.next()).ok_or_else(|| format!("`{option}` wants a value"));
            match option.as_str() {
                "--workers" => workers = Some(number(&option, &value()?)?),
                "--devices" => devices = Some(number(&option, &value()?)?),
                "--slices" => slices = number(&option, &value()?)?,
                "--via" => via = Some(value()?),
                "--hosts" => hosts = value()?.split(',').map(host).collect::<Result<_, _>>()?,
                "--device" => platform = value()?.to_uppercase(),
                "--name" => name = Some(host(&value()?)?),
                "--zone" => zone = Some(host(&value()?)?),
                "--worker" => worker = Some(value()?),
                "--env" => {
                    let one = value()?;
                    let (name, value) = one.split_once('=').ok_or_else(|| format!("`--env {one}` is no NAME=VALUE"))?;
                    variables.push((name.to_owned(), value.to_owned()));
                }
                other => {
                    return Err(format!(
                        "a pod has no option `{other}`: there are --workers N, --via WAY, --hosts a,b, --devices N, --slices N, --device \
                         PLATFORM, --name NAME, --zone ZONE, --worker COMMAND, --env NAME=VALUE"
                    ));
                }
            }
        }
        let via = via.unwrap_or_else(|| if hosts.is_empty() && name.is_none() { "local".into() } else { "ssh".into() });
        let n = workers.unwrap_or(hosts.len().max(1));
        if !hosts.is_empty() && hosts.len() != n {
            return Err(format!("--workers is {n}, and --hosts names {}", xlazy_mime::count(hosts.len(), "host")));
        }
        if n % slices != 0 {
            return Err(format!(
                "--slices is {slices}, and {} are none that split evenly",
                xlazy_mime::count(n, "worker")
            ));
        }
        let known = WAYS.iter().find(|(way, _)| *way == via);
        let template = match known {
            Some((_, template)) => *template,
            None if via.contains(char::is_whitespace) || via.contains('{') => via.as_str(),
            None => {
                let ways: Vec<&str> = WAYS.iter().map(|(way, _)| *way).collect();
                return Err(format!(
                    "there is no way `{via}` to a worker: there are {}, or a command such as 'ssh {{host}}'",
                    ways.join(", ")
                ));
            }
        };
        for (wants, given, option) in [("{host}", !hosts.is_empty(), "--hosts"), ("{name}", name.is_some(), "--name")] {
            if template.contains(wants) && !given {
                return Err(format!(
                    "--via {via} reaches workers by their {}: say them with {option}",
                    &wants[1..wants.len() - 1]
                ));
            }
        }
        let arrives = via != "local" && worker.is_none();
        let worker = worker.unwrap_or_else(|| if arrives { "/bin/sh" } else { here }.to_owned());
        let one = |i: usize| {
            let local = if via == "local" { "local" } else { "" };
            let host = hosts.get(i).cloned().unwrap_or_else(|| local.to_owned());
            let option =
                |option: &str, value: &Option<String>| value.as_ref().map_or(String::new(), |v| format!("{option}{v}"));
            let nodelist = hosts.get(i).map_or(String::new(), |h| format!("--nodelist={h}"));
            let mut command = template
                .replace("{host}", &host)
                .replace("{i}", &i.to_string())
                .replace("{n}", &n.to_string())
                .replace("{name}", name.as_deref().unwrap_or_default())
                .replace("{zone}", &option("--zone=", &zone))
                .replace("{nodelist}", &nodelist);
            match command.contains("{worker}") || command.contains("{quoted}") {
                true => command = command.replace("{worker}", &worker).replace("{quoted}", &quoted(&worker)),
                false => command = format!("{command} {worker}"),
            }
            (host, command)
        };
        if let Some(devices) = devices {
            variables.push(("XLAZY_CPU_DEVICES".into(), devices.to_string()));
        }
        if platform == "TPU" && n > 1 && matches!(via.as_str(), "ssh" | "srun") && !hosts.is_empty() {
            // Where no metadata server tells libtpu who the others are.
            let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
            set("TPU_WORKER_ID", "{in_slice}");
            set("TPU_WORKER_HOSTNAMES", "{of_slice}");
            if slices > 1 {
                set("MEGASCALE_COORDINATOR_ADDRESS", "{first}");
                set("MEGASCALE_NUM_SLICES", &slices.to_string());
                set("MEGASCALE_SLICE_ID", "{slice}");
            }
        }
        Ok(Spec { workers: (0..n).map(one).collect(), arrives, platform, slices, variables })
    }

    /// What is set in a worker.
    pub fn variables(&self, i: usize) -> Vec<(String, String)> {
        // Who logs in there is none of the name.
        let name = |host: &'_ str| host.rfind('@').map_or(0, |at| at + 1);
        let hosts: Vec<&str> = self.workers.iter().map(|(host, _)| &host[name(host)..]).collect();
        let each = hosts.len() / self.slices;
        let (slice, in_slice) = (i / each, i % each);
        let own = |v: &str| {
            v.replace("{i}", &i.to_string())
                .replace("{n}", &hosts.len().to_string())
                .replace("{hosts}", &hosts.join(","))
                .replace("{host}", hosts[i])
                .replace("{first}", hosts[0])
                .replace("{slice}", &slice.to_string())
                .replace("{in_slice}", &in_slice.to_string())
                .replace("{of_slice}", &hosts[slice * each..][..each].join(","))
        };
        self.variables.iter().map(|(name, v)| (name.clone(), own(v))).collect()
    }
}

/// Where the other workers of a pod find this one: the address of its host.
///
/// Errors: the host's name is none that this machine knows.
pub fn address(host: &str) -> Result<String, String> {
    if matches!(host, "local" | "") {
        return Ok("127.0.0.1".into());
    }
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    let found =
        (name, 0).to_socket_addrs().map_err(|e| format!("the host {name} does not know its own address: {e}"))?;
    let found = found.filter(|a| a.is_ipv4()).map(|a| a.ip()).min_by_key(IpAddr::is_loopback);
    found.map(|ip| ip.to_string()).ok_or_else(|| format!("the host {name} has no IPv4 address"))
}

fn number(option: &str, value: &str) -> Result<usize, String> {
    let n = value.parse().ok().filter(|n| (1..=MOST).contains(n));
    n.ok_or_else(|| format!("`{option} {value}`: expected a number from 1 to {MOST}"))
}

/// A name that goes into a command of the shell: it must be nothing else there.
fn host(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_@:/[]".contains(c);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(fits) {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` is no host: it may have letters, digits and .-_@:/[]")),
    }
}

/// A text as one word of the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Words as a shell would split them, with either quotes.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => all.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    match quote {
        Some(q) => Err(format!("a {q} is not closed")),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Spec, String> {
        Spec::read(text, "/opt/xlazy-session --worker")
    }

    #[test]
    fn a_way_becomes_a_command_for_each_worker() {
        let commands = |text: &str| read(text).unwrap().workers.into_iter().map(|(_, c)| c).collect::<Vec<_>>();
        assert_eq!(commands(""), ["exec /opt/xlazy-session --worker"]);
        assert_eq!(commands("--workers 2"), ["exec /opt/xlazy-session --worker"; 2]);
        assert_eq!(
            commands("--hosts a,me@b"),
            ["a", "me@b"].map(|h| format!("exec ssh -o BatchMode=yes -o ConnectTimeout=20 {h} /bin/sh"))
        );
        assert_eq!(commands("--via 'ssh -p 2222 {host}' --hosts a"), ["ssh -p 2222 a /bin/sh"]);
        assert_eq!(
            commands("--via gcloud --name t --zone us-central1-a --workers 2 --worker '~/x worker'")[1],
            "exec gcloud compute tpus tpu-vm ssh t --zone=us-central1-a --worker=1 --command='~/x worker'"
        );
        assert_eq!(
            commands("--via gcloud --name t")[0],
            "exec gcloud compute tpus tpu-vm ssh t  --worker=0 --command='/bin/sh'"
        );
        let arrives = |text: &str| read(text).unwrap().arrives;
        assert_eq!(["--hosts a", "", "--hosts a --worker ~/x"].map(arrives), [true, false, false]);
        assert_eq!(commands("--via kubectl --hosts pod/a"), ["exec kubectl exec -i pod/a -- /bin/sh"]);
        assert_eq!(commands("--via srun"), ["exec srun --nodes=1 --ntasks=1  /bin/sh"]);
    }

    #[test]
    fn what_is_no_pod_is_refused_with_what_there_is() {
        for (text, why) in [
            ("--workers 0", "`--workers 0`: expected a number from 1 to 128"),
            ("--workers", "`--workers` wants a value"),
            ("--fast", "a pod has no option `--fast`"),
            ("--via telnet", "there is no way `telnet` to a worker: there are local, ssh, gcloud, kubectl, srun"),
            ("--via ssh", "say them with --hosts"),
            ("--via gcloud", "say them with --name"),
            ("--workers 3 --hosts a,b", "--workers is 3, and --hosts names 2 hosts"),
            ("--hosts 'a;reboot'", "`a;reboot` is no host"),
            ("--hosts -oProxyCommand=x", "`-oProxyCommand=x` is no host"),
            ("--via 'ssh {host}", "a ' is not closed"),
            ("--env A", "`--env A` is no NAME=VALUE"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn variables_are_each_workers_own() {
        let spec = read("--hosts a,b --device tpu --env ID=x{i}of{n} --devices 3").unwrap();
        let all = spec.variables(1);
        let of = |name: &str| all.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!((of("ID"), of("XLAZY_CPU_DEVICES")), (Some("x1of2"), Some("3")));
        assert_eq!((of("TPU_WORKER_ID"), of("TPU_WORKER_HOSTNAMES")), (Some("1"), Some("a,b")));
        assert_eq!(spec.platform, "TPU");
    }

    #[test]
    fn slices_have_workers_of_their_own() {
        let spec = read("--hosts me@a,me@b,c,d --device tpu --slices 2").unwrap();
        let all = spec.variables(3);
        let wanted = [
            ("TPU_WORKER_ID", "1"),
            ("TPU_WORKER_HOSTNAMES", "c,d"),
            ("MEGASCALE_COORDINATOR_ADDRESS", "a"),
            ("MEGASCALE_NUM_SLICES", "2"),
            ("MEGASCALE_SLICE_ID", "1"),
        ];
        assert!(all.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(wanted), "{all:?}");
        assert!(read("--workers 3 --slices 2").unwrap_err().contains("3 workers are none that split evenly"));
    }
}
