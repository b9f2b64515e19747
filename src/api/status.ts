/** Types of corev1.PodStatus as kubelets write it. Times are RFC 3339 in whole seconds, as metav1.Time is. */

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";

export interface ContainerStateWaiting {
  readonly reason?: string;
  readonly message?: string;
}

export interface ContainerStateRunning {
  readonly startedAt: string | null;
}

export interface ContainerStateTerminated {
  readonly exitCode: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** `<runtime>://<id>` */
  readonly containerID?: string;
}

/** At most one of the three; none means waiting without a reason. */
export interface ContainerState {
  readonly waiting?: ContainerStateWaiting;
  readonly running?: ContainerStateRunning;
  readonly terminated?: ContainerStateTerminated;
}

/** Quantities by resource name, in canonical form. */
export type ResourceList = Readonly<Record<string, string>>;

export interface ResourceStatus {
  readonly limits?: ResourceList;
  readonly requests?: ResourceList;
}

export interface VolumeMountStatus {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly recursiveReadOnly?: "Enabled" | "Disabled";
}

export interface ContainerUser {
  readonly linux?: {
    readonly uid: number;
    readonly gid: number;
    readonly supplementalGroups?: readonly number[];
  };
}

export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly started?: boolean;
  readonly allocatedResources?: ResourceList;
  readonly resources?: ResourceStatus;
  readonly volumeMounts?: readonly VolumeMountStatus[];
  readonly user?: ContainerUser;
  readonly stopSignal?: string;
}

export type ConditionStatus = "True" | "False" | "Unknown";

export interface PodCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly observedGeneration?: number;
  readonly lastProbeTime: string | null;
  readonly lastTransitionTime: string | null;
  readonly reason?: string;
  readonly message?: string;
}

export interface PodStatus {
  readonly observedGeneration?: number;
  readonly phase: PodPhase;
  readonly conditions?: readonly PodCondition[];
  readonly message?: string;
  readonly reason?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  readonly qosClass?: "Guaranteed" | "Burstable" | "BestEffort";
  readonly allocatedResources?: ResourceList;
  readonly resources?: ResourceStatus;
}
