import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";

/** Total bytes of termination messages in a pod's status; its containers share them equally. */
const maxPodMessageBytes = 12 * 1024;

/** Truncates a container's termination message to its share, between two characters. */
export function cutTerminationMessage(pod: Pod, message: string): string {
  const count = Math.max(1, allContainers(pod.spec).length);
  const limit = Math.floor(maxPodMessageBytes / count);
  const bytes = new TextEncoder().encode(message);
  if (bytes.length <= limit) return message;
  let end = limit;
  // 10xxxxxx continues a character that began before.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
