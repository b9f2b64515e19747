import type { RuntimeLayout } from "./layout.ts";

/** The machine's facts for the configuration. */
export interface ContainerdSettings {
  /** Reference of the pause image that is imported beside it. */
  readonly sandboxImage: string;
  /** Directory with the CNI plugins, e.g. `/usr/lib/cni`. */
  readonly cniPluginDirectory: string;
  /** Absolute path of runc. */
  readonly runc: string;
  /**
   * False where CAP_SYS_RESOURCE is missing: no process may lower its OOM score then, so that containerd has to keep
   * the scores of containers at or above its own.
   */
  readonly mayLowerOomScore: boolean;
}

/**
 * Plugins that pods never need, of any containerd version. They would only slow the start down or, like NRI and opt,
 * reach for directories that belong to the system's containerd. Versions ignore the names that they do not know.
 */
const disabledPlugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.internal.v1.tracing",
  "io.containerd.mount-handler.v1.erofs",
  "io.containerd.monitor.container.v1.restart",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.native",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
];

/**
 * The private containerd's config.toml. Schema version 2 is the one that containerd 1.6, 1.7 and 2.x all read; 2.x moves
 * the CRI section to its successors by itself.
 * (https://github.com/containerd/containerd/blob/main/docs/cri/config.md)
 */
export function containerdConfig(layout: RuntimeLayout, settings: ContainerdSettings): string {
  const { containerd, cni } = layout;
  return `# Made by podwright for its private containerd; overwritten at each start of it.
version = 2
root = ${toml(containerd.root)}
state = ${toml(containerd.state)}
disabled_plugins = [
${disabledPlugins.map((name) => `  ${toml(name)},\n`).join("")}]

[grpc]
  address = ${toml(containerd.socket)}

[debug]
  level = "warn"

[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = ${toml(settings.sandboxImage)}
  restrict_oom_score_adj = ${!settings.mayLowerOomScore}
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${toml(settings.cniPluginDirectory)}
    conf_dir = ${toml(cni.configDirectory)}
    max_conf_num = 1

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = ${toml(settings.runc)}
        Root = ${toml(containerd.runcRoot)}
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = ${toml(containerd.registryHosts)}
`;
}

/** What the pods' network depends on. */
export interface NetworkSettings {
  /** The pods' IPv4 subnet, e.g. `10.88.7.0/24`. */
  readonly subnet: string;
  /**
   * True where the host drops what it forwards (Docker makes it so): the firewall plugin then lets the pods' packets
   * pass.
   */
  readonly openForwarding: boolean;
}

/**
 * The CNI network list: a bridge with host-local addresses, masquerading, and host ports.
 * (https://www.cni.dev/plugins/current/main/bridge/)
 */
export function cniConfig(layout: RuntimeLayout, settings: NetworkSettings): string {
  const bridge = {
    type: "bridge",
    bridge: layout.cni.bridge,
    isDefaultGateway: true,
    ipMasq: true,
    hairpinMode: true,
    ipam: {
      type: "host-local",
      dataDir: layout.cni.dataDirectory,
      ranges: [[{ subnet: settings.subnet }]],
    },
  };
  const portmap = { type: "portmap", capabilities: { portMappings: true } };
  const plugins = settings.openForwarding ? [bridge, { type: "firewall" }, portmap] : [bridge, portmap];
  return `${JSON.stringify({ cniVersion: "1.0.0", name: layout.cni.networkName, plugins }, undefined, 2)}\n`;
}

/** A TOML basic string; JSON's escapes are a subset of TOML's. */
function toml(text: string): string {
  return JSON.stringify(text);
}
