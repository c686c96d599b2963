{{- define "web.name" -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end }}
{{- define "web.labels" -}}
app: {{ include "web.name" . }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- range $k, $v := .Values.labels }}
{{ $k }}: {{ $v | quote }}
{{- end }}
{{- end }}
