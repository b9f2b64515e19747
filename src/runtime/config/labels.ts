/** Labels and annotations that kubelets set on sandboxes and containers: node agents recognise pods by them. */
export const Label = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

export const Annotation = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  preStopHandler: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
  deletionGracePeriod: "io.kubernetes.pod.deletionGracePeriod",
  terminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
  configHash: "kubernetes.io/config.hash",
  configSource: "kubernetes.io/config.source",
  configSeen: "kubernetes.io/config.seen",
  configMirror: "kubernetes.io/config.mirror",
} as const;
