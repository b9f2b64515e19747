/** Upstream's names of the plugins behind volumes, by the field of the volume. */
export const volumePlugins: Readonly<Record<string, string>> = {
  emptyDir: "kubernetes.io/empty-dir",
  configMap: "kubernetes.io/configmap",
  secret: "kubernetes.io/secret",
  downwardAPI: "kubernetes.io/downward-api",
  projected: "kubernetes.io/projected",
  hostPath: "kubernetes.io/host-path",
};
