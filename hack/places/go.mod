module github.com/flight-operator/flight-operator/hack/places

go 1.26.0
