import { ownFiles } from "./own-files.ts";

/** Where the services of systemd and what they run are. */
export interface ServicePlaces {
  /** The directory of the manifests that run at boot. */
  readonly manifests: string;
  /** Units of the administrator. */
  readonly units: string;
  /** Exists when systemd is process 1 (sd_booted(3)). */
  readonly booted: string;
  /** What units start: bin/podwright, absolute. */
  readonly launcher: string;
}

export function systemPlaces(): ServicePlaces {
  return {
    manifests: "/etc/podwright/manifests",
    units: "/etc/systemd/system",
    booted: "/run/systemd/system",
    launcher: ownFiles().launcher,
  };
}

export const engineService = "podwright.service";
export const kubeletService = "podwright-kubelet.service";

/** The first line of units that podwright wrote, and may remove. */
export const unitMark = "# Written by podwright, which removes it again.";

/** The unit of `podwright enable`. */
export function engineUnit({ launcher, manifests }: ServicePlaces, stateDirectory: string): string {
  return unit(launcher, {
    description: `podwright, with the pods of ${manifests}`,
    command: `${launcher} engine --stay --state-dir ${stateDirectory} --manifests ${manifests}`,
    reload: "ExecReload=kill -HUP $MAINPID\n",
  });
}

/**
 * The unit of `podwright kubelet`.
 * @param flags after `podwright kubelet`, as they would stand in a shell
 */
export function kubeletUnit({ launcher }: ServicePlaces, flags: string): string {
  return unit(launcher, {
    description: "podwright as this machine's kubelet",
    command: `${launcher} kubelet ${flags}`,
    reload: "",
  });
}

/**
 * Has the machine's kubelet.service start podwright, with the parameters that the unit has now.
 * @param parameters with the unit's own variables
 */
export function kubeletDropIn({ launcher }: ServicePlaces, parameters: string): string {
  return `[Service]
ExecStart=
ExecStart=${launcher} kubelet ${parameters}
Type=notify
NotifyAccess=main
TimeoutStartSec=5min
WatchdogSec=1min
KillMode=process
Delegate=yes
`;
}

/** Pods and their runtime outlive each stop and restart: only the main process is ended, and the cgroup is left to it. */
function unit(
  launcher: string,
  parts: { readonly description: string; readonly command: string; readonly reload: string },
): string {
  return `[Unit]
Description=${parts.description}
Documentation=man:podwright(1)
Wants=network-online.target
After=network-online.target containerd.service
ConditionFileIsExecutable=${launcher}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart=${parts.command}
${parts.reload}Restart=always
RestartSec=1
# Bad input stays bad.
RestartPreventExitStatus=2
TimeoutStartSec=5min
WatchdogSec=1min
KillMode=process
Delegate=yes
OOMScoreAdjust=-999
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`;
}
