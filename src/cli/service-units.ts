import { ownFiles } from "./own-files.ts";
import { unitProgram, unitWord } from "./unit-words.ts";

/** Places of systemd's units, and of what they run. */
export interface ServicePlaces {
  /** The directory of the manifests that run at boot. */
  readonly manifests: string;
  /** The directory of the administrator's units. */
  readonly units: string;
  /** Exists when systemd is process 1 (sd_booted(3)). */
  readonly booted: string;
  /** The absolute path of bin/podwright. */
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

/**
 * Pods and their runtime outlive stops and restarts: systemd ends only the main process, and delegates the cgroup to it. A start may
 * include starting containerd and importing images.
 */
const supervision = `Type=notify
NotifyAccess=main
TimeoutStartSec=5min
WatchdogSec=1min
KillMode=process
Delegate=yes
`;

/**
 * The unit of `podwright enable`.
 * @throws PodwrightError when systemd cannot start the launcher
 */
export function engineUnit({ launcher, manifests }: ServicePlaces, stateDirectory: string): string {
  return unit(launcher, {
    description: `podwright, with the pods of ${unitWord(manifests)}`,
    words: ["engine", "--stay", "--state-dir", stateDirectory, "--manifests", manifests],
    reload: "ExecReload=kill -HUP $MAINPID\n",
  });
}

/**
 * The unit of `podwright kubelet`.
 * @param flags the words after `podwright kubelet`
 * @throws PodwrightError when systemd cannot start the launcher
 */
export function kubeletUnit({ launcher }: ServicePlaces, flags: readonly string[]): string {
  return unit(launcher, {
    description: "podwright as this machine's kubelet",
    words: ["kubelet", ...flags],
    reload: "",
  });
}

/**
 * The drop-in with which kubelet.service starts podwright.
 * @param parameters as written in the unit, with its variables and quotes
 * @throws PodwrightError when systemd cannot start the launcher
 */
export function kubeletDropIn({ launcher }: ServicePlaces, parameters: string): string {
  return `[Service]
ExecStart=
ExecStart=${unitProgram(launcher)} kubelet ${parameters}
${supervision}`;
}

function unit(
  launcher: string,
  parts: { readonly description: string; readonly words: readonly string[]; readonly reload: string },
): string {
  return `[Unit]
Description=${parts.description}
Documentation=man:podwright(1)
Wants=network-online.target
After=network-online.target containerd.service
ConditionFileIsExecutable=${launcher}
StartLimitIntervalSec=0

[Service]
ExecStart=${[unitProgram(launcher), ...parts.words.map(unitWord)].join(" ")}
${parts.reload}${supervision}Restart=always
RestartSec=1
# Bad input stays bad.
RestartPreventExitStatus=2
OOMScoreAdjust=-999
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`;
}
