#pragma once
void report(const float* values, int n);
