import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { decodeDockerConfig, DockerConfigError, type DockerConfigForm } from "../../images/docker-config.ts";
import type { PullSecret } from "../../images/pull-credentials.ts";
import type { Cause, Recorder } from "../../journal/entry.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import type { SecretContent } from "../../api/object-content.ts";
import type { ObjectLookup } from "../config/environment.ts";
import { podRef } from "../pod-ref.ts";

/** Secret types with registry credentials, and the key of each. */
const forms: Readonly<Record<string, { readonly key: string; readonly form: DockerConfigForm }>> = {
  "kubernetes.io/dockerconfigjson": { key: ".dockerconfigjson", form: "config.json" },
  "kubernetes.io/dockercfg": { key: ".dockercfg", form: ".dockercfg" },
};

/**
 * The pod's pull secrets (the API server adds those of its service account). Missing ones are reported, and the pull
 * continues without them: the image may be public.
 */
export async function pullSecretsOf(
  deps: { readonly objects: ObjectLookup; readonly journal: Recorder },
  pod: Pod,
  cause: Cause,
  signal: AbortSignal,
): Promise<PullSecret[]> {
  const names = new Set((pod.spec.imagePullSecrets ?? []).map(({ name = "" }) => name).filter((name) => name !== ""));
  if (names.size === 0) return [];
  await deps.objects.settle?.(pod, { spec: { imagePullSecrets: pod.spec.imagePullSecrets } }, signal);
  const secrets: PullSecret[] = [];
  const problems: string[] = [];
  const { namespace } = pod.metadata;
  for (const name of names) {
    try {
      const secret = deps.objects.secret(namespace, name);
      if (secret === undefined) problems.push(name);
      else secrets.push({ source: { uid: secret.uid, namespace, name }, entries: decode(secret) });
    } catch (error) {
      if (error instanceof ContainerConfigError) problems.push(name);
      else if (error instanceof DockerConfigError) problems.push(`${name}: ${errorMessage(error)}`);
      else throw error;
    }
  }
  if (problems.length > 0) {
    const listed = problems.join(", ");
    const message = `Unable to retrieve some image pull secrets (${listed}); attempting to pull the image may not succeed.`;
    const what = "FailedToRetrieveImagePullSecret";
    deps.journal.record({ kind: "observation", what, message, pod: podRef(pod), cause });
  }
  return secrets;
}

function decode({ type, data }: SecretContent): PullSecret["entries"] {
  const place = Object.hasOwn(forms, type) ? forms[type] : undefined;
  if (place === undefined) throw new DockerConfigError(`its type ${JSON.stringify(type)} is not a pull secret type`);
  const content = data.get(place.key);
  if (content === undefined || content.length === 0) throw new DockerConfigError(`it has no ${place.key}`);
  try {
    return decodeDockerConfig(content, place.form);
  } catch (error) {
    throw new DockerConfigError(`its ${place.key}: ${errorMessage(error)}`);
  }
}
