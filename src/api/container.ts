import { z } from "zod";
import { IntOrString, Quantity } from "./meta.ts";
import { EnvVarSource, HttpGetAction, VolumeMount } from "./volume.ts";

export const ResourceRequirements = z.strictObject({
  limits: z.record(z.string(), Quantity).optional(),
  requests: z.record(z.string(), Quantity).optional(),
  claims: z.array(z.strictObject({ name: z.string(), request: z.string().optional() })).optional(),
});

export const ContainerPort = z.strictObject({
  name: z.string().optional(),
  hostPort: z.int().optional(),
  containerPort: z.int(),
  protocol: z.enum(["TCP", "UDP", "SCTP"]).optional(),
  hostIP: z.string().optional(),
});

const EnvVar = z.strictObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: EnvVarSource.optional(),
});

const EnvFromSource = z.strictObject({
  prefix: z.string().optional(),
  configMapRef: z.strictObject({ name: z.string().optional(), optional: z.boolean().optional() }).optional(),
  secretRef: z.strictObject({ name: z.string().optional(), optional: z.boolean().optional() }).optional(),
});

const ExecAction = z.strictObject({ command: z.array(z.string()).optional() });
const TcpSocketAction = z.strictObject({ port: IntOrString, host: z.string().optional() });

const LifecycleHandler = z.strictObject({
  exec: ExecAction.optional(),
  httpGet: HttpGetAction.optional(),
  tcpSocket: TcpSocketAction.optional(),
  sleep: z.strictObject({ seconds: z.int() }).optional(),
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
  grpc: z.strictObject({ port: z.int(), service: z.string().optional() }).optional(),
  initialDelaySeconds: z.int().optional(),
  timeoutSeconds: z.int().optional(),
  periodSeconds: z.int().optional(),
  successThreshold: z.int().optional(),
  failureThreshold: z.int().optional(),
  terminationGracePeriodSeconds: z.int().optional(),
});

export const SeccompProfile = z.strictObject({ type: z.string(), localhostProfile: z.string().optional() });
export const SELinuxOptions = z.strictObject({
  user: z.string().optional(),
  role: z.string().optional(),
  type: z.string().optional(),
  level: z.string().optional(),
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
  exitCodes: z.strictObject({ operator: z.string(), values: z.array(z.int()).optional() }).optional(),
});

/** corev1.Container. */
export const Container = z.strictObject({
  name: z.string(),
  image: z.string().optional(),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  workingDir: z.string().optional(),
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
  terminationMessagePath: z.string().optional(),
  terminationMessagePolicy: z.enum(["File", "FallbackToLogsOnError"]).optional(),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).optional(),
  securityContext: SecurityContext.optional(),
  stdin: z.boolean().optional(),
  stdinOnce: z.boolean().optional(),
  tty: z.boolean().optional(),
});

export const EphemeralContainer = Container.extend({ targetContainerName: z.string().optional() });

export type Container = z.infer<typeof Container>;
export type ContainerPort = z.infer<typeof ContainerPort>;
export type ResourceRequirements = z.infer<typeof ResourceRequirements>;
export type EnvVar = z.infer<typeof EnvVar>;
export type EphemeralContainer = z.infer<typeof EphemeralContainer>;
