import type { Container, EphemeralContainer, ResourceRequirements } from "../api/container.ts";
import type { PodManifest, PodSpec } from "../api/pod.ts";
import type { EnvVarSource, HttpGetAction, Volume } from "../api/volume.ts";
import { containerLimits, containerRequests, isSupportedPodResource } from "../resources/pod-totals.ts";
import { QuantityError, readQuantity } from "../resources/quantity.ts";

type ContainerFields = Partial<Container>;
type Probe = NonNullable<Container["livenessProbe"]>;
type LifecycleHandler = NonNullable<NonNullable<Container["lifecycle"]>["postStart"]>;
type DownwardItems = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>;

/**
 * A pod with every field that the API server would have filled in (upstream: SetObjectDefaults_Pod). What a manifest
 * gives is never changed, except that a zero or empty text counts as not given where it does upstream.
 */
export function withDefaults(pod: PodManifest): PodManifest {
  return { ...pod, spec: defaultSpec(pod.spec) };
}

function defaultSpec(spec: PodSpec): PodSpec {
  return withPodResources(defaultFields(inThousandths(spec)));
}

type Amounts = NonNullable<ResourceRequirements["limits"]>;

/** Quantities that are finer than thousandths rounded up, wherever they are amounts of a resource. */
function inThousandths(spec: PodSpec): PodSpec {
  const whole = <C extends { resources?: ResourceRequirements | undefined }>(part: C): C => {
    const { limits, requests } = part.resources ?? {};
    if (limits === undefined && requests === undefined) return part;
    const rounded = {
      ...(limits && { limits: roundedUp(limits) }),
      ...(requests && { requests: roundedUp(requests) }),
    };
    return { ...part, resources: { ...part.resources, ...rounded } };
  };
  return {
    ...whole(spec),
    ...(spec.overhead && { overhead: roundedUp(spec.overhead) }),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(whole) }),
    containers: spec.containers.map(whole),
  };
}

function roundedUp(amounts: Amounts): Amounts {
  const entries = Object.entries(amounts).map(([name, written]): [string, string | number] => {
    const amount = readQuantity(written);
    const rounded = amount?.inThousandths();
    // Validation reports invalid quantities.
    return [name, rounded === undefined || rounded === amount ? written : rounded.toString()];
  });
  return Object.fromEntries(entries);
}

function defaultFields(spec: PodSpec): PodSpec {
  const hostNetwork = spec.hostNetwork === true;
  // The old name of the field and the new one always hold the same.
  const serviceAccount = spec.serviceAccountName || spec.serviceAccount;
  return {
    ...spec,
    ...(spec.volumes && { volumes: spec.volumes.map(defaultVolume) }),
    ...(spec.initContainers && {
      initContainers: spec.initContainers.map((container) => defaultPodContainer(container, hostNetwork)),
    }),
    containers: spec.containers.map((container) => defaultPodContainer(container, hostNetwork)),
    ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(defaultContainer) }),
    restartPolicy: spec.restartPolicy ?? "Always",
    terminationGracePeriodSeconds: graceSeconds(spec.terminationGracePeriodSeconds),
    dnsPolicy: spec.dnsPolicy ?? "ClusterFirst",
    ...(serviceAccount && { serviceAccountName: serviceAccount, serviceAccount }),
    securityContext: spec.securityContext ?? {},
    schedulerName: spec.schedulerName || "default-scheduler",
    enableServiceLinks: spec.enableServiceLinks ?? true,
  };
}

/** A negative one is the shortest that there is, as at the API server. */
function graceSeconds(given = 30): number {
  return given < 0 ? 1 : given;
}

function defaultPodContainer(container: Container, hostNetwork: boolean): Container {
  const defaulted = defaultContainer(container);
  return {
    ...defaulted,
    resources: defaultRequests(container.resources ?? {}),
    ...(hostNetwork &&
      defaulted.ports && {
        ports: defaulted.ports.map((port) => ({ ...port, hostPort: port.hostPort || port.containerPort })),
      }),
  };
}

/** A limit without a request is also the request. */
function defaultRequests(resources: ResourceRequirements): ResourceRequirements {
  if (resources.limits === undefined) return resources;
  return { ...resources, requests: { ...resources.limits, ...resources.requests } };
}

/**
 * Pod-level defaults when some are set (KEP-2837; upstream: defaultHugePagePodLimits, defaultPodRequests): limits of
 * huge pages from its containers, requests from its containers or else its limits.
 */
function withPodResources(spec: PodSpec): PodSpec {
  const { resources } = spec;
  if (resources === undefined) return spec;
  try {
    const limits = { ...resources.limits };
    const asks = Object.keys(limits).length > 0 || Object.keys(resources.requests ?? {}).length > 0;
    for (const [name, sum] of asks ? containerLimits({ spec }) : []) {
      const isSet = limits[name] !== undefined || resources.requests?.[name] !== undefined;
      if (name.startsWith("hugepages-") && !isSet) limits[name] = sum.toString();
    }
    if (Object.keys(limits).length === 0) return spec;
    const requests = { ...resources.requests };
    for (const [name, sum] of containerRequests({ spec })) {
      if (name === "cpu" || name === "memory") requests[name] ??= sum.toString();
    }
    for (const [name, limit] of Object.entries(limits)) {
      if (isSupportedPodResource(name)) requests[name] ??= limit;
    }
    return { ...spec, resources: { ...resources, limits, requests } };
  } catch (error) {
    // Validation reports invalid quantities.
    if (error instanceof QuantityError) return spec;
    throw error;
  }
}

function defaultContainer<C extends Container | EphemeralContainer>(container: C): C {
  const defaults: ContainerFields = {
    resources: container.resources ?? {},
    terminationMessagePath: container.terminationMessagePath || "/dev/termination-log",
    terminationMessagePolicy: container.terminationMessagePolicy ?? "File",
    imagePullPolicy: container.imagePullPolicy ?? defaultPullPolicy(container.image ?? ""),
  };
  if (container.ports) {
    defaults.ports = container.ports.map((port) => ({ ...port, protocol: port.protocol ?? "TCP" }));
  }
  if (container.env) {
    defaults.env = container.env.map((variable) =>
      variable.valueFrom ? { ...variable, valueFrom: defaultEnvSource(variable.valueFrom) } : variable,
    );
  }
  for (const kind of ["livenessProbe", "readinessProbe", "startupProbe"] as const) {
    const probe = container[kind];
    if (probe) defaults[kind] = defaultProbe(probe);
  }
  if (container.lifecycle) {
    const { postStart, preStop } = container.lifecycle;
    defaults.lifecycle = {
      ...container.lifecycle,
      ...(postStart && { postStart: defaultHandler(postStart) }),
      ...(preStop && { preStop: defaultHandler(preStop) }),
    };
  }
  return { ...container, ...defaults };
}

/** Always for an image whose tag is `latest`, given or implied; a digest implies no tag. */
function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  const [name = "", digest] = image.split("@", 2);
  const tag = /:([^:/]*)$/u.exec(name)?.[1];
  return name !== "" && (tag ?? (digest === undefined ? "latest" : "")) === "latest" ? "Always" : "IfNotPresent";
}

function defaultEnvSource(source: EnvVarSource): EnvVarSource {
  return {
    ...source,
    ...(source.fieldRef && { fieldRef: defaultFieldRef(source.fieldRef) }),
    ...(source.fileKeyRef && { fileKeyRef: { ...source.fileKeyRef, optional: source.fileKeyRef.optional ?? false } }),
  };
}

function defaultFieldRef(reference: NonNullable<EnvVarSource["fieldRef"]>): NonNullable<EnvVarSource["fieldRef"]> {
  return { ...reference, apiVersion: reference.apiVersion || "v1" };
}

function defaultProbe(probe: Probe): Probe {
  return {
    ...probe,
    ...(probe.httpGet && { httpGet: defaultHttpGet(probe.httpGet) }),
    ...(probe.grpc && { grpc: { ...probe.grpc, service: probe.grpc.service ?? "" } }),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

function defaultHandler(handler: LifecycleHandler): LifecycleHandler {
  return handler.httpGet ? { ...handler, httpGet: defaultHttpGet(handler.httpGet) } : handler;
}

function defaultHttpGet(action: HttpGetAction): HttpGetAction {
  return { ...action, path: action.path || "/", scheme: action.scheme || "HTTP" };
}

const defaultFileMode = 0o644;

function defaultVolume(volume: Volume): Volume {
  const sources = Object.keys(volume).filter((key) => key !== "name");
  if (sources.length === 0) return { ...volume, emptyDir: {} };
  const { configMap, downwardAPI, hostPath, image, projected, secret } = volume;
  return {
    ...volume,
    ...(hostPath && { hostPath: { ...hostPath, type: hostPath.type ?? "" } }),
    ...(configMap && { configMap: { ...configMap, defaultMode: configMap.defaultMode ?? defaultFileMode } }),
    ...(secret && { secret: { ...secret, defaultMode: secret.defaultMode ?? defaultFileMode } }),
    ...(downwardAPI && {
      downwardAPI: {
        ...defaultDownward(downwardAPI),
        defaultMode: downwardAPI.defaultMode ?? defaultFileMode,
      },
    }),
    ...(projected && {
      projected: {
        ...projected,
        defaultMode: projected.defaultMode ?? defaultFileMode,
        ...(projected.sources && { sources: projected.sources.map(defaultProjection) }),
      },
    }),
    ...(image && { image: { ...image, pullPolicy: image.pullPolicy || defaultPullPolicy(image.reference ?? "") } }),
  };
}

function defaultProjection(
  projection: NonNullable<NonNullable<Volume["projected"]>["sources"]>[number],
): typeof projection {
  const { downwardAPI, serviceAccountToken } = projection;
  return {
    ...projection,
    ...(downwardAPI && { downwardAPI: defaultDownward(downwardAPI) }),
    ...(serviceAccountToken && {
      serviceAccountToken: {
        ...serviceAccountToken,
        expirationSeconds: serviceAccountToken.expirationSeconds ?? 3600,
      },
    }),
  };
}

function defaultDownward<D extends { items?: DownwardItems | undefined }>(source: D): D {
  if (source.items === undefined) return source;
  return {
    ...source,
    items: source.items.map((item) => (item.fieldRef ? { ...item, fieldRef: defaultFieldRef(item.fieldRef) } : item)),
  };
}
