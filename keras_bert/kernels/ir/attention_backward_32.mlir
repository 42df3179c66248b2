module {
  tt.func public @backward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %deltas: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<1> : tensor<64xi32>
    %cst_0 = arith.constant dense<0x7F800000> : tensor<64xf32>
    %cst_1 = arith.constant -5.000000e+08 : f32
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<64xf32>
    %cst_3 = arith.constant dense<0> : tensor<64xi32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c2_i32 = arith.constant 2 : i32
    %cst_5 = arith.constant dense<15> : tensor<64xi32>
    %cst_6 = arith.constant dense<569420461> : tensor<64xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_10 = arith.constant dense<-2147483648> : tensor<64xi32>
    %c64_i32 = arith.constant 64 : i32
    %cst_11 = arith.constant 1.44269502 : f32
    %c2_i64 = arith.constant 2 : i64
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.extsi %length : i32 to i64
    %7 = arith.muli %3, %6 : i64
    %8 = arith.muli %heads, %c96_i32 : i32
    %9 = arith.extsi %8 : i32 to i64
    %10 = arith.muli %7, %9 : i64
    %11 = tt.addptr %qkv, %10 : !tt.ptr<$float>, i64
    %12 = arith.muli %1, %c32_i32 : i32
    %13 = tt.addptr %11, %12 : !tt.ptr<$float>, i32
    %14 = tt.addptr %d_qkv, %10 : !tt.ptr<$float>, i64
    %15 = tt.addptr %14, %12 : !tt.ptr<$float>, i32
    %16 = arith.extsi %4 : i32 to i64
    %17 = arith.muli %7, %16 : i64
    %18 = arith.extsi %12 : i32 to i64
    %19 = arith.addi %17, %18 : i64
    %20 = tt.addptr %d_out, %19 : !tt.ptr<$float>, i64
    %21 = arith.extsi %heads : i32 to i64
    %22 = arith.muli %3, %21 : i64
    %23 = arith.extsi %1 : i32 to i64
    %24 = arith.addi %22, %23 : i64
    %25 = arith.muli %24, %6 : i64
    %26 = tt.addptr %log_sums, %25 : !tt.ptr<f32>, i64
    %27 = tt.addptr %deltas, %25 : !tt.ptr<f32>, i64
    %28 = arith.muli %3, %c2_i64 : i64
    %29 = arith.muli %28, %6 : i64
    %30 = tt.addptr %groups, %29 : !tt.ptr<i32>, i64
    %31 = arith.muli %2, %heads : i32
    %32 = arith.addi %31, %1 : i32
    %33 = arith.muli %32, %length : i32
    %34 = tt.load %seed : !tt.ptr<i32>
    %35 = arith.shrui %34, %c16_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = arith.muli %36, %c569420461_i32 : i32
    %38 = arith.shrui %37, %c15_i32 : i32
    %39 = arith.xori %37, %38 : i32
    %40 = arith.muli %39, %c-749064809_i32 : i32
    %41 = arith.shrui %40, %c15_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %44 = tt.load %43 : !tt.ptr<i32>
    %45 = arith.addi %42, %44 : i32
    %46 = arith.shrui %45, %c16_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.muli %47, %c569420461_i32 : i32
    %49 = arith.shrui %48, %c15_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c-749064809_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.mulf %scale, %cst_11 : f32
    %55 = arith.muli %0, %c64_i32 : i32
    %56 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %57 = tt.splat %55 : i32 -> tensor<64xi32>
    %58 = arith.addi %57, %56 : tensor<64xi32>
    %59 = tt.expand_dims %58 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %60 = tt.splat %length : i32 -> tensor<64x1xi32>
    %61 = arith.cmpi slt, %59, %60 : tensor<64x1xi32>
    %62 = tt.splat %8 : i32 -> tensor<64x1xi32>
    %63 = arith.muli %59, %62 : tensor<64x1xi32>
    %64 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %65 = tt.broadcast %63 : tensor<64x1xi32> -> tensor<64x32xi32>
    %66 = tt.broadcast %64 : tensor<1x32xi32> -> tensor<64x32xi32>
    %67 = arith.addi %65, %66 : tensor<64x32xi32>
    %68 = tt.addptr %13, %4 : !tt.ptr<$float>, i32
    %69 = tt.splat %68 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %70 = tt.addptr %69, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %71 = tt.broadcast %61 : tensor<64x1xi1> -> tensor<64x32xi1>
    %72 = tt.load %70, %71, %cst_7 : tensor<64x32x!tt.ptr<$float>>
    %73 = arith.muli %heads, %c64_i32 : i32
    %74 = tt.addptr %13, %73 : !tt.ptr<$float>, i32
    %75 = tt.splat %74 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %76 = tt.addptr %75, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %77 = tt.load %76, %71, %cst_7 : tensor<64x32x!tt.ptr<$float>>
    %78 = tt.splat %length : i32 -> tensor<64xi32>
    %79 = arith.cmpi slt, %58, %78 : tensor<64xi32>
    %80 = tt.addptr %30, %length : !tt.ptr<i32>, i32
    %81 = tt.splat %80 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %82 = tt.addptr %81, %58 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %83 = tt.load %82, %79, %cst_10 : tensor<64x!tt.ptr<i32>>
    %84 = arith.addi %53, %c2_i32 : i32
    %85 = arith.shrui %84, %c16_i32 : i32
    %86 = arith.xori %84, %85 : i32
    %87 = arith.muli %86, %c569420461_i32 : i32
    %88 = arith.shrui %87, %c15_i32 : i32
    %89 = arith.xori %87, %88 : i32
    %90 = arith.muli %89, %c-749064809_i32 : i32
    %91 = arith.shrui %90, %c15_i32 : i32
    %92 = arith.xori %90, %91 : i32
    %93 = tt.splat %92 : i32 -> tensor<64xi32>
    %94 = arith.addi %58, %93 : tensor<64xi32>
    %95 = arith.muli %94, %cst_6 : tensor<64xi32>
    %96 = arith.shrui %95, %cst_5 : tensor<64xi32>
    %97 = arith.xori %95, %96 : tensor<64xi32>
    %98 = tt.expand_dims %97 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %99:2 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_8, %arg14 = %cst_8) -> (tensor<64x32xf32>, tensor<64x32xf32>)  : i32 {
      %163 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %164 = arith.addi %163, %56 : tensor<64xi32>
      %165 = tt.expand_dims %164 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %166 = arith.cmpi slt, %165, %60 : tensor<64x1xi32>
      %167 = arith.muli %165, %62 : tensor<64x1xi32>
      %168 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
      %169 = tt.addptr %168, %167 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
      %170 = tt.broadcast %169 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
      %171 = tt.addptr %170, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %172 = tt.broadcast %166 : tensor<64x1xi1> -> tensor<64x32xi1>
      %173 = tt.load %171, %172, %cst_7 : tensor<64x32x!tt.ptr<$float>>
      %174 = tt.splat %4 : i32 -> tensor<64x1xi32>
      %175 = arith.muli %165, %174 : tensor<64x1xi32>
      %176 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
      %177 = tt.addptr %176, %175 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
      %178 = tt.broadcast %177 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
      %179 = tt.addptr %178, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %180 = tt.load %179, %172, %cst_7 : tensor<64x32x!tt.ptr<$float>>
      %181 = arith.cmpi slt, %164, %78 : tensor<64xi32>
      %182 = tt.splat %26 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %183 = tt.addptr %182, %164 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %184 = tt.load %183, %181, %cst_0 : tensor<64x!tt.ptr<f32>>
      %185 = arith.mulf %scale, %cst_1 : f32
      %186 = arith.mulf %185, %cst_11 : f32
      %187 = tt.splat %186 : f32 -> tensor<64xf32>
      %188 = arith.cmpf olt, %184, %187 : tensor<64xf32>
      %189 = arith.sitofp %length : i32 to f32
      %190 = math.log2 %189 : f32
      %191 = arith.negf %190 : f32
      %192 = tt.splat %191 : f32 -> tensor<64xf32>
      %193 = arith.select %188, %192, %cst_2 : tensor<64xi1>, tensor<64xf32>
      %194 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %195 = tt.addptr %194, %164 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %196 = tt.load %195, %181, %cst_4 : tensor<64x!tt.ptr<f32>>
      %197 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %198 = tt.addptr %197, %164 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %199 = tt.load %198, %181, %cst_3 : tensor<64x!tt.ptr<i32>>
      %200 = tt.trans %173 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %201 = tt.dot %72, %200, %cst_9, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %202 = tt.splat %54 : f32 -> tensor<64x64xf32>
      %203 = arith.mulf %201, %202 : tensor<64x64xf32>
      %204 = tt.expand_dims %184 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %205 = tt.broadcast %204 : tensor<1x64xf32> -> tensor<64x64xf32>
      %206 = arith.subf %203, %205 : tensor<64x64xf32>
      %207 = tt.expand_dims %199 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %208 = tt.expand_dims %83 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %209 = tt.broadcast %207 : tensor<1x64xi32> -> tensor<64x64xi32>
      %210 = tt.broadcast %208 : tensor<64x1xi32> -> tensor<64x64xi32>
      %211 = arith.cmpi eq, %209, %210 : tensor<64x64xi32>
      %212 = tt.expand_dims %193 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %213 = tt.broadcast %212 : tensor<1x64xf32> -> tensor<64x64xf32>
      %214 = arith.select %211, %206, %213 : tensor<64x64xi1>, tensor<64x64xf32>
      %215 = math.exp2 %214 : tensor<64x64xf32>
      %216 = tt.trans %180 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %217 = tt.dot %77, %216, %cst_9, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %218 = tt.splat %33 : i32 -> tensor<64xi32>
      %219 = arith.addi %218, %164 : tensor<64xi32>
      %220 = arith.addi %53, %c1_i32 : i32
      %221 = arith.shrui %220, %c16_i32 : i32
      %222 = arith.xori %220, %221 : i32
      %223 = arith.muli %222, %c569420461_i32 : i32
      %224 = arith.shrui %223, %c15_i32 : i32
      %225 = arith.xori %223, %224 : i32
      %226 = arith.muli %225, %c-749064809_i32 : i32
      %227 = arith.shrui %226, %c15_i32 : i32
      %228 = arith.xori %226, %227 : i32
      %229 = tt.splat %228 : i32 -> tensor<64xi32>
      %230 = arith.addi %219, %229 : tensor<64xi32>
      %231 = arith.muli %230, %cst_6 : tensor<64xi32>
      %232 = arith.shrui %231, %cst_5 : tensor<64xi32>
      %233 = arith.xori %231, %232 : tensor<64xi32>
      %234 = arith.ori %233, %cst : tensor<64xi32>
      %235 = tt.expand_dims %234 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %236 = tt.broadcast %235 : tensor<1x64xi32> -> tensor<64x64xi32>
      %237 = tt.broadcast %98 : tensor<64x1xi32> -> tensor<64x64xi32>
      %238 = arith.muli %236, %237 : tensor<64x64xi32>
      %239 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %240 = arith.cmpi uge, %238, %239 : tensor<64x64xi32>
      %241 = arith.select %240, %217, %cst_9 : tensor<64x64xi1>, tensor<64x64xf32>
      %242 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %243 = arith.mulf %241, %242 : tensor<64x64xf32>
      %244 = tt.expand_dims %196 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %245 = tt.broadcast %244 : tensor<1x64xf32> -> tensor<64x64xf32>
      %246 = arith.subf %243, %245 : tensor<64x64xf32>
      %247 = arith.mulf %215, %246 : tensor<64x64xf32>
      %248 = arith.select %240, %215, %cst_9 : tensor<64x64xi1>, tensor<64x64xf32>
      %249 = arith.truncf %248 : tensor<64x64xf32> to tensor<64x64x$float>
      %250 = tt.dot %249, %180, %arg14, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      %251 = arith.truncf %247 : tensor<64x64xf32> to tensor<64x64x$float>
      %252 = tt.dot %251, %173, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %252, %250 : tensor<64x32xf32>, tensor<64x32xf32>
    }
    %100 = tt.addptr %15, %4 : !tt.ptr<$float>, i32
    %101 = tt.splat %100 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %102 = tt.addptr %101, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %103 = tt.splat %scale : f32 -> tensor<64x32xf32>
    %104 = arith.mulf %99#0, %103 : tensor<64x32xf32>
    %105 = arith.truncf %104 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %102, %105, %71 : tensor<64x32x!tt.ptr<$float>>
    %106 = tt.addptr %15, %73 : !tt.ptr<$float>, i32
    %107 = tt.splat %106 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %108 = tt.addptr %107, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %109 = tt.splat %factor : f32 -> tensor<64x32xf32>
    %110 = arith.mulf %99#1, %109 : tensor<64x32xf32>
    %111 = arith.truncf %110 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %108, %111, %71 : tensor<64x32x!tt.ptr<$float>>
    %112 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %113 = tt.addptr %112, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %114 = tt.load %113, %71, %cst_7 : tensor<64x32x!tt.ptr<$float>>
    %115 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %116 = arith.muli %59, %115 : tensor<64x1xi32>
    %117 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %118 = tt.addptr %117, %116 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %119 = tt.broadcast %118 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %120 = tt.addptr %119, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %121 = tt.load %120, %71, %cst_7 : tensor<64x32x!tt.ptr<$float>>
    %122 = tt.splat %26 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %123 = tt.addptr %122, %58 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %124 = tt.load %123, %79, %cst_0 : tensor<64x!tt.ptr<f32>>
    %125 = arith.mulf %scale, %cst_1 : f32
    %126 = arith.mulf %125, %cst_11 : f32
    %127 = tt.splat %126 : f32 -> tensor<64xf32>
    %128 = arith.cmpf olt, %124, %127 : tensor<64xf32>
    %129 = arith.sitofp %length : i32 to f32
    %130 = math.log2 %129 : f32
    %131 = arith.negf %130 : f32
    %132 = tt.splat %131 : f32 -> tensor<64xf32>
    %133 = arith.select %128, %132, %cst_2 : tensor<64xi1>, tensor<64xf32>
    %134 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %135 = tt.addptr %134, %58 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %136 = tt.load %135, %79, %cst_4 : tensor<64x!tt.ptr<f32>>
    %137 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %138 = tt.addptr %137, %58 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %139 = tt.load %138, %79, %cst_3 : tensor<64x!tt.ptr<i32>>
    %140 = tt.splat %33 : i32 -> tensor<64xi32>
    %141 = arith.addi %140, %58 : tensor<64xi32>
    %142 = arith.addi %53, %c1_i32 : i32
    %143 = arith.shrui %142, %c16_i32 : i32
    %144 = arith.xori %142, %143 : i32
    %145 = arith.muli %144, %c569420461_i32 : i32
    %146 = arith.shrui %145, %c15_i32 : i32
    %147 = arith.xori %145, %146 : i32
    %148 = arith.muli %147, %c-749064809_i32 : i32
    %149 = arith.shrui %148, %c15_i32 : i32
    %150 = arith.xori %148, %149 : i32
    %151 = tt.splat %150 : i32 -> tensor<64xi32>
    %152 = arith.addi %141, %151 : tensor<64xi32>
    %153 = arith.muli %152, %cst_6 : tensor<64xi32>
    %154 = arith.shrui %153, %cst_5 : tensor<64xi32>
    %155 = arith.xori %153, %154 : tensor<64xi32>
    %156 = arith.ori %155, %cst : tensor<64xi32>
    %157 = tt.expand_dims %156 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %158 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_8) -> (tensor<64x32xf32>)  : i32 {
      %163 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %164 = arith.addi %163, %56 : tensor<64xi32>
      %165 = tt.expand_dims %164 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %166 = arith.cmpi slt, %165, %60 : tensor<64x1xi32>
      %167 = arith.muli %165, %62 : tensor<64x1xi32>
      %168 = tt.broadcast %167 : tensor<64x1xi32> -> tensor<64x32xi32>
      %169 = arith.addi %168, %66 : tensor<64x32xi32>
      %170 = tt.addptr %69, %169 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %171 = tt.broadcast %166 : tensor<64x1xi1> -> tensor<64x32xi1>
      %172 = tt.load %170, %171, %cst_7 : tensor<64x32x!tt.ptr<$float>>
      %173 = tt.addptr %75, %169 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %174 = tt.load %173, %171, %cst_7 : tensor<64x32x!tt.ptr<$float>>
      %175 = arith.cmpi slt, %164, %78 : tensor<64xi32>
      %176 = tt.addptr %81, %164 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %177 = tt.load %176, %175, %cst_10 : tensor<64x!tt.ptr<i32>>
      %178 = tt.trans %172 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %179 = tt.dot %114, %178, %cst_9, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %180 = tt.splat %54 : f32 -> tensor<64x64xf32>
      %181 = arith.mulf %179, %180 : tensor<64x64xf32>
      %182 = tt.expand_dims %124 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %183 = tt.broadcast %182 : tensor<64x1xf32> -> tensor<64x64xf32>
      %184 = arith.subf %181, %183 : tensor<64x64xf32>
      %185 = tt.expand_dims %139 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %186 = tt.expand_dims %177 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %187 = tt.broadcast %185 : tensor<64x1xi32> -> tensor<64x64xi32>
      %188 = tt.broadcast %186 : tensor<1x64xi32> -> tensor<64x64xi32>
      %189 = arith.cmpi eq, %187, %188 : tensor<64x64xi32>
      %190 = tt.expand_dims %133 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %191 = tt.broadcast %190 : tensor<64x1xf32> -> tensor<64x64xf32>
      %192 = arith.select %189, %184, %191 : tensor<64x64xi1>, tensor<64x64xf32>
      %193 = math.exp2 %192 : tensor<64x64xf32>
      %194 = tt.trans %174 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %195 = tt.dot %121, %194, %cst_9, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %196 = arith.addi %164, %93 : tensor<64xi32>
      %197 = arith.muli %196, %cst_6 : tensor<64xi32>
      %198 = arith.shrui %197, %cst_5 : tensor<64xi32>
      %199 = arith.xori %197, %198 : tensor<64xi32>
      %200 = tt.expand_dims %199 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %201 = tt.broadcast %157 : tensor<64x1xi32> -> tensor<64x64xi32>
      %202 = tt.broadcast %200 : tensor<1x64xi32> -> tensor<64x64xi32>
      %203 = arith.muli %201, %202 : tensor<64x64xi32>
      %204 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %205 = arith.cmpi uge, %203, %204 : tensor<64x64xi32>
      %206 = arith.select %205, %195, %cst_9 : tensor<64x64xi1>, tensor<64x64xf32>
      %207 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %208 = arith.mulf %206, %207 : tensor<64x64xf32>
      %209 = tt.expand_dims %136 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %210 = tt.broadcast %209 : tensor<64x1xf32> -> tensor<64x64xf32>
      %211 = arith.subf %208, %210 : tensor<64x64xf32>
      %212 = arith.mulf %193, %211 : tensor<64x64xf32>
      %213 = arith.truncf %212 : tensor<64x64xf32> to tensor<64x64x$float>
      %214 = tt.dot %213, %172, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %214 : tensor<64x32xf32>
    }
    %159 = tt.splat %15 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %160 = tt.addptr %159, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %161 = arith.mulf %158, %103 : tensor<64x32xf32>
    %162 = arith.truncf %161 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %160, %162, %71 : tensor<64x32x!tt.ptr<$float>>
    tt.return
  }
}
