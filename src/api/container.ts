import * as z from "zod";
import { Int32, IntOrString, optionalChoice, OptionalText, Quantity } from "./meta.ts";
import { EnvVarSource, HttpGetAction, VolumeMount } from "./volume.ts";

export const ResourceRequirements = z.strictObject({
  limits: z.record(z.string(), Quantity).optional(),
  requests: z.record(z.string(), Quantity).optional(),
  claims: z.array(z.strictObject({ name: z.string(), request: OptionalText })).optional(),
});

export const ContainerPort = z.strictObject({
  name: OptionalText,
  hostPort: Int32.optional(),
  containerPort: Int32,
  protocol: optionalChoice(["TCP", "UDP", "SCTP"]),
  hostIP: OptionalText,
});

const EnvVar = z.strictObject({
  name: z.string(),
  /** Readers do not distinguish empty from unset; the text stays as written. */
  value: z.string().optional(),
  valueFrom: EnvVarSource.optional(),
});

const EnvFromSource = z.strictObject({
  prefix: OptionalText,
  configMapRef: z.strictObject({ name: OptionalText, optional: z.boolean().optional() }).optional(),
  secretRef: z.strictObject({ name: OptionalText, optional: z.boolean().optional() }).optional(),
});

const ExecAction = z.strictObject({ command: z.array(z.string()).optional() });
const TcpSocketAction = z.strictObject({ port: IntOrString, host: OptionalText });

const LifecycleHandler = z.strictObject({
  exec: ExecAction.optional(),
  httpGet: HttpGetAction.optional(),
  tcpSocket: TcpSocketAction.optional(),
  sleep: z.strictObject({ seconds: z.int().default(0) }).optional(),
});

const Lifecycle = z.strictObject({
  postStart: LifecycleHandler.optional(),
  preStop: LifecycleHandler.optional(),
  stopSignal: z.string().optional(),
});

const Probe = z.strictObject({
  exec: ExecAction.optional(),
  httpGet: HttpGetAction.optional(),
  tcpSocket: TcpSocketAction.optional(),
  grpc: z.strictObject({ port: Int32, service: z.string().optional() }).optional(),
  initialDelaySeconds: Int32.optional(),
  timeoutSeconds: Int32.optional(),
  periodSeconds: Int32.optional(),
  successThreshold: Int32.optional(),
  failureThreshold: Int32.optional(),
  terminationGracePeriodSeconds: z.int().optional(),
});

export const SeccompProfile = z.strictObject({ type: z.string(), localhostProfile: z.string().optional() });
export const SELinuxOptions = z.strictObject({
  user: OptionalText,
  role: OptionalText,
  type: OptionalText,
  level: OptionalText,
});
export const WindowsOptions = z.strictObject({
  gmsaCredentialSpecName: z.string().optional(),
  gmsaCredentialSpec: z.string().optional(),
  runAsUserName: z.string().optional(),
  hostProcess: z.boolean().optional(),
});

const SecurityContext = z.strictObject({
  capabilities: z
    .strictObject({ add: z.array(z.string()).optional(), drop: z.array(z.string()).optional() })
    .optional(),
  privileged: z.boolean().optional(),
  seLinuxOptions: SELinuxOptions.optional(),
  windowsOptions: WindowsOptions.optional(),
  runAsUser: z.int().optional(),
  runAsGroup: z.int().optional(),
  runAsNonRoot: z.boolean().optional(),
  readOnlyRootFilesystem: z.boolean().optional(),
  allowPrivilegeEscalation: z.boolean().optional(),
  procMount: z.string().optional(),
  seccompProfile: SeccompProfile.optional(),
  appArmorProfile: SeccompProfile.optional(),
});

const ContainerRestartRule = z.strictObject({
  action: z.string(),
  exitCodes: z.strictObject({ operator: z.string(), values: z.array(Int32).optional() }).optional(),
});

/** corev1.Container. */
export const Container = z.strictObject({
  name: z.string(),
  image: OptionalText,
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  workingDir: OptionalText,
  ports: z.array(ContainerPort).optional(),
  envFrom: z.array(EnvFromSource).optional(),
  env: z.array(EnvVar).optional(),
  resources: ResourceRequirements.optional(),
  resizePolicy: z.array(z.strictObject({ resourceName: z.string(), restartPolicy: z.string() })).optional(),
  restartPolicy: z.enum(["Always", "OnFailure", "Never"]).optional(),
  restartPolicyRules: z.array(ContainerRestartRule).optional(),
  volumeMounts: z.array(VolumeMount).optional(),
  volumeDevices: z.array(z.strictObject({ name: z.string(), devicePath: z.string() })).optional(),
  livenessProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  startupProbe: Probe.optional(),
  lifecycle: Lifecycle.optional(),
  terminationMessagePath: OptionalText,
  terminationMessagePolicy: optionalChoice(["File", "FallbackToLogsOnError"]),
  imagePullPolicy: optionalChoice(["Always", "IfNotPresent", "Never"]),
  securityContext: SecurityContext.optional(),
  stdin: z.boolean().optional(),
  stdinOnce: z.boolean().optional(),
  tty: z.boolean().optional(),
});

export const EphemeralContainer = Container.extend({ targetContainerName: OptionalText });

export type Container = z.infer<typeof Container>;
export type ContainerPort = z.infer<typeof ContainerPort>;
export type ResourceRequirements = z.infer<typeof ResourceRequirements>;
export type EnvVar = z.infer<typeof EnvVar>;
export type EphemeralContainer = z.infer<typeof EphemeralContainer>;
