/** Fields of CRI requests that limits and descriptions are read from; every other field is left alone. */
interface KnownFields {
  readonly timeout?: unknown;
  readonly containerId?: unknown;
  readonly podSandboxId?: unknown;
  readonly image?: { readonly image?: unknown };
  readonly config?: { readonly metadata?: { readonly namespace?: unknown; readonly name?: unknown } };
}

/**
 * How long a unary call may take, in milliseconds: what the Go kubelet's CRI client gives it
 * (`runtimeRequestTimeout` for most). Undefined when only the caller's signal ends it.
 */
export function callLimitMs(method: string, request: object, requestTimeoutMs: number): number | undefined {
  const ownTimeoutMs = seconds((request as KnownFields).timeout) * 1000;
  switch (method) {
    case "RunPodSandbox":
      return 2 * requestTimeoutMs;
    case "StopContainer":
      return requestTimeoutMs + ownTimeoutMs;
    case "ExecSync":
      return ownTimeoutMs === 0 ? undefined : requestTimeoutMs + ownTimeoutMs;
    case "CheckpointContainer":
      return Math.max(requestTimeoutMs, ownTimeoutMs);
    case "PullImage":
      return undefined;
    default:
      return requestTimeoutMs;
  }
}

/** What a call is about, for a person: an id, an image, or a pod as namespace/name. Never credentials or content. */
export function describeRequest(request: object): string {
  const { containerId, podSandboxId, image, config } = request as KnownFields;
  if (isText(containerId)) return containerId;
  if (isText(podSandboxId)) {
    return isText(config?.metadata?.name) ? `${config.metadata.name} in ${podSandboxId}` : podSandboxId;
  }
  if (isText(image?.image)) return image.image;
  const metadata = config?.metadata;
  if (!isText(metadata?.name)) return "";
  return isText(metadata.namespace) ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** CRI's timeouts are int64 seconds; absent and negative ones count as 0. */
function seconds(value: unknown): number {
  return typeof value === "bigint" && value > 0n ? Number(value) : 0;
}
