package places

import "math"

// earthRadiusKm is the mean radius.
const earthRadiusKm = 6371.0088

func distanceKm(a, b *airport) float64 { return haversineKm(a.lat, a.lon, b.lat, b.lon) }

// haversineKm returns the great-circle distance between two points in degrees.
func haversineKm(lat1, lon1, lat2, lon2 float64) float64 {
	const radian = math.Pi / 180
	sinLat := math.Sin((lat2 - lat1) * radian / 2)
	sinLon := math.Sin((lon2 - lon1) * radian / 2)
	h := sinLat*sinLat + math.Cos(lat1*radian)*math.Cos(lat2*radian)*sinLon*sinLon
	return 2 * earthRadiusKm * math.Asin(math.Sqrt(min(1, h)))
}

// centre returns the middle of airports. It adds up vectors, since a mean of degrees is wrong across the date line.
func centre(airports []*airport) (lat, lon float64) {
	const radian = math.Pi / 180
	var x, y, z float64
	for _, a := range airports {
		x += math.Cos(a.lat*radian) * math.Cos(a.lon*radian)
		y += math.Cos(a.lat*radian) * math.Sin(a.lon*radian)
		z += math.Sin(a.lat * radian)
	}
	return math.Atan2(z, math.Hypot(x, y)) / radian, math.Atan2(y, x) / radian
}
