//! Parsers of single facts about a host.

/// `PRETTY_NAME` of an os-release file.
pub fn distribution(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let plain = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            value[1..].strip_suffix(quote)?.replace("\\\"", "\"").replace("\\$", "$")
        }
        _ => value.to_owned(),
    };
    (!plain.is_empty()).then_some(plain)
}

/// The model of the first processor in `/proc/cpuinfo`, under the name that each architecture has for it.
pub fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let value = fields.find(|(key, _)| key.trim_end() == name)?.1.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    // x86 and LoongArch; POWER; MIPS; RISC-V; old ARM.
    let named =
        ["model name", "Model Name", "cpu", "cpu model", "uarch", "Processor"].into_iter().find_map(field);
    // ARM has numbers alone, s390 a line per processor with the machine in it.
    let arm = || Some(format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    let s390 =
        || Some(format!("{} {}", field("vendor_id")?, field("processor 0")?.split_once("machine = ")?.1));
    named.or_else(arm).or_else(s390)
}

/// How many processors a list such as `0-3,8` names.
pub fn processors_in_list(list: &str) -> Option<u32> {
    let mut count = 0u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// How many processors `/proc/self/status` allows this process.
pub fn processors_allowed(status: &str) -> Option<u32> {
    processors_in_list(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

/// What tells of virtual machines and containers.
#[derive(Debug, Clone, Copy, Default)]
pub struct VirtualizationClues<'a> {
    /// `/proc/cpuinfo`.
    pub cpuinfo: Option<&'a str>,
    /// `/sys/class/dmi/id/sys_vendor` and `product_name`, one after the other.
    pub machine: Option<&'a str>,
    /// `/sys/hypervisor/type`.
    pub hypervisor: Option<&'a str>,
    /// Clock sources available; some are offered by a hypervisor.
    pub clock_sources: Option<&'a str>,
    /// `/proc/self/cgroup`.
    pub cgroup: Option<&'a str>,
    /// `/run/systemd/container`, which names the container.
    pub systemd_container: Option<&'a str>,
    /// Whether `/.dockerenv` exists.
    pub dockerenv: bool,
    /// Whether `/run/.containerenv` exists.
    pub containerenv: bool,
}

/// Hypervisor and container, such as `kvm` or `vmware, docker container`. `None` when nothing tells of one.
pub fn virtualization(clues: VirtualizationClues<'_>) -> Option<String> {
    let container = container(clues).map(|name| format!("{name} container"));
    let parts: Vec<_> = hypervisor(clues).into_iter().chain(container).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn hypervisor(clues: VirtualizationClues<'_>) -> Option<String> {
    const MACHINES: [(&str, &str); 10] = [
        ("Amazon EC2", "kvm (Amazon EC2)"),
        ("Google", "kvm (Google Compute Engine)"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("Microsoft Corporation Virtual Machine", "hyper-v"),
        ("Parallels", "parallels"),
        ("Xen", "xen"),
        ("QEMU", "qemu"),
        ("KVM", "kvm"),
    ];
    const CLOCKS: [(&str, &str); 3] = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")];
    let lookup = |text: Option<&str>, table: &[(&str, &str)]| {
        let words = text?.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        table.iter().find(|(clue, _)| words.contains(clue)).map(|(_, name)| (*name).to_owned())
    };
    let flag = |line: &str| {
        line.split_once(':').is_some_and(|(key, flags)| {
            key.trim_end() == "flags" && flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")
        })
    };
    let under_hypervisor = clues.cpuinfo.is_some_and(|text| text.lines().any(flag));
    let kernel = clues.hypervisor.map(str::trim).filter(|kind| !kind.is_empty()).map(str::to_owned);
    // Bare-metal machines of a cloud carry its name as well; on x86 the processor flag is what tells.
    let x86 = clues.cpuinfo.is_some_and(|text| text.lines().any(|line| line.starts_with("flags")));
    let machine = if x86 && !under_hypervisor { None } else { lookup(clues.machine, &MACHINES) };
    kernel
        .or(machine)
        .or_else(|| lookup(clues.clock_sources, &CLOCKS))
        .or_else(|| under_hypervisor.then(|| "hypervisor of unknown kind".to_owned()))
}

fn container(clues: VirtualizationClues<'_>) -> Option<String> {
    const GROUPS: [(&str, &str); 6] = [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
        ("garden", "garden"),
    ];
    // A process in such a group of a host's own slice (`docker.service`) is not in a container.
    let in_group = |clue: &str| {
        clues.cgroup.is_some_and(|text| {
            text.split(['\n', '/']).any(|part| part.contains(clue) && !part.ends_with(".service"))
        })
    };
    let named = clues.systemd_container.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    named
        .or_else(|| clues.dockerenv.then(|| "docker".to_owned()))
        .or_else(|| clues.containerenv.then(|| "podman".to_owned()))
        .or_else(|| GROUPS.iter().find(|(clue, _)| in_group(clue)).map(|(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n";
        assert_eq!(distribution(debian).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(
            distribution("NAME=x\nPRETTY_NAME='Alpine Linux v3.20'").as_deref(),
            Some("Alpine Linux v3.20")
        );
        assert_eq!(distribution("PRETTY_NAME=Void").as_deref(), Some("Void"));
        assert_eq!(distribution("PRETTY_NAME=\"a \\\"b\\\"\"").as_deref(), Some("a \"b\""));
        for nothing in ["", "NAME=x", "PRETTY_NAME=", "PRETTY_NAME=\"", "PRETTY_NAME=\"\""] {
            assert_eq!(distribution(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn processor_models_of_several_architectures() {
        let model = |text| cpu_model(text).unwrap();
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz\n";
        assert_eq!(model(x86), "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz");
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n";
        assert_eq!(model(arm), "ARM implementer 0x41 part 0xd40");
        assert_eq!(
            model("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"),
            "POWER9, altivec supported"
        );
        assert_eq!(model("processor\t: 0\nhart\t\t: 1\nuarch\t\t: sifive,u74-mc\n"), "sifive,u74-mc");
        let s390 = "vendor_id       : IBM/S390\n# processors    : 2\nprocessor 0: version = FF,  identification = 1A,  machine = 3931\n";
        assert_eq!(model(s390), "IBM/S390 3931");
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: \n"), None);
    }

    #[test]
    fn processor_lists() {
        assert_eq!(processors_in_list("0-1\n"), Some(2));
        assert_eq!(processors_in_list("0"), Some(1));
        assert_eq!(processors_in_list("0-3,8,10-11"), Some(7));
        for broken in ["", "a", "3-1", "0-", "0-4294967295"] {
            assert_eq!(processors_in_list(broken), None, "{broken:?}");
        }
        assert_eq!(processors_allowed("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0,2-3\n"), Some(3));
        assert_eq!(processors_allowed("Name:\tx\n"), None);
    }

    #[test]
    fn virtual_machines_and_containers() {
        let guest =
            VirtualizationClues { cpuinfo: Some("flags\t\t: fpu hypervisor lm\n"), ..Default::default() };
        let bare = VirtualizationClues { cpuinfo: Some("flags\t\t: fpu vmx lm\n"), ..Default::default() };
        let told = |clues| virtualization(clues).unwrap_or_default();
        assert_eq!(virtualization(bare), None);
        assert_eq!(told(guest), "hypervisor of unknown kind");
        assert_eq!(
            told(VirtualizationClues { clock_sources: Some("tsc kvm-clock acpi_pm"), ..guest }),
            "kvm"
        );
        assert_eq!(
            told(VirtualizationClues { machine: Some("VMware, Inc.\nVMware7,1\n"), ..guest }),
            "vmware"
        );
        let azure = Some("Microsoft Corporation\nVirtual Machine\n");
        assert_eq!(told(VirtualizationClues { machine: azure, ..guest }), "hyper-v");
        assert_eq!(
            virtualization(VirtualizationClues { machine: Some("Amazon EC2\nc5.metal\n"), ..bare }),
            None
        );
        let graviton = VirtualizationClues { machine: Some("Amazon EC2\nc7g.large\n"), ..Default::default() };
        assert_eq!(told(graviton), "kvm (Amazon EC2)");
        assert_eq!(told(VirtualizationClues { hypervisor: Some("xen\n"), ..guest }), "xen");

        assert_eq!(told(VirtualizationClues { dockerenv: true, ..bare }), "docker container");
        let pod = Some("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-1.scope\n");
        let pod = VirtualizationClues { cgroup: pod, clock_sources: Some("kvm-clock"), ..guest };
        assert_eq!(told(pod), "kvm, kubernetes container");
        assert_eq!(
            virtualization(VirtualizationClues { cgroup: Some("0::/system.slice/docker.service\n"), ..bare }),
            None
        );
        assert_eq!(
            told(VirtualizationClues { systemd_container: Some("systemd-nspawn\n"), ..bare }),
            "systemd-nspawn container"
        );
    }
}
